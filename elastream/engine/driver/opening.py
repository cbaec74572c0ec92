"""The first entry of a run: a new base begins, an old one goes on where it was."""

from collections.abc import Iterator

import pyarrow as pa

from elastream import rules
from elastream.engine.worker.context import encoded_schemas, schemas_of
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import SettingError
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry
from elastream.lanes.segments import PARTS, decode_schema
from elastream.lanes.state import LedgerState
from elastream.routing import hashing
from elastream.routing.key_groups import dealt_out
from elastream.state.columns import KeyedColumns
from elastream.topology import DUE, Graph, Kind, stored
from elastream.workload.replay import Replay


def first_entry(
    graph: Graph, state: LedgerState, discard: tuple[str, ...], base: str, start: int | None, wall_s: float
) -> Entry:
    """Operators keep the lanes of their name; nobody's tuples are forgotten silently.

    A new run's operators begin with `start` replicas, or as many of these as they may have.
    """
    for reason in refusals(graph, state, discard, base):
        raise SettingError(reason)
    states = keyed_states(graph, state, discard, base)
    consumed, counts = _dropped(state, discard)
    outputs: list[str] = [operator.name for operator in graph.operators if operator.kind is Kind.OUTPUT]
    return Entry(
        state.entry + 1,
        wall_s,
        consumed,
        counts=counts,
        sizes={operator.name: _size(graph, operator.name, state, start) for operator in graph.served},
        schemas={key: text for key, text in encoded_schemas(graph).items() if key not in state.schemas},
        outputs=outputs,
        owners={
            name: dict(enumerate(dealt_out(range(_size(graph, name, state, start)))))
            for name in graph.reached_by_keys
            if name not in state.owners
        },
        hash_version=hashing.VERSION if graph.reached_by_keys else 0,
        states={name: text for name, text in states.items() if name in discard or state.states.get(name) != text},
        forgotten=[name for name in discard if name in state.states],
    )


def refusals(graph: Graph, state: LedgerState, discard: tuple[str, ...], base: str) -> Iterator[str]:
    """Reasons why a graph cannot go on with a base.

    Tuples that wait must be for the same kind of operator with the same columns, or be discarded. Sources go on as what they were.
    """
    expected, _ = schemas_of(graph)
    for name in sorted({lane.operator for lane, queue in state.lanes.items() if len(queue)} - {*discard, DEAD_LETTERS}):
        here = graph[name] if name in graph else None  # noqa: SIM401 - a graph is no dict
        was = "output" if name in state.outputs else "operator"
        now = "output" if here is not None and here.kind is Kind.OUTPUT else "operator"
        way_out = (
            f"put it back until they are {'read' if was == 'output' else 'served'}, or run with discard=({name!r},)"
        )
        waiting = f"base {base}: {state.queued(name)} tuples wait for {was} {name!r}"
        if here is None or here.chained or here.kind is Kind.SOURCE:
            yield f"{waiting}, which this topology does not have; {way_out}"
            continue
        if was != now:
            yield f"{waiting}, which is an {now} now; {way_out}"
            continue
        for schema in {piece.schema for queue in state.lanes_of(name).values() for piece in queue.slices}:
            if schema not in (expected[name], expected.get(name + PARTS)):
                before, after = decode_schema(state.schemas[schema]), stored(graph.input_schema(name))
                yield f"{waiting} with columns {columns(before)}, and now it takes {columns(after)}; {way_out}"
    if state.owners and state.hash_version != hashing.VERSION:
        yield (
            f"base {base}: its keys fall into groups by version {state.hash_version} of the hash, and this Elastream has version "
            f"{hashing.VERSION}; go on with the Elastream that wrote it, or begin with a new base"
        )
    for source in graph.sources:
        known = state.sources.get(source.name)
        if known is not None and isinstance(source.source, Replay) is not ("origin_s" in known):
            was, now = ("replay", "stream") if "origin_s" in known else ("stream", "replay")
            yield (
                f"base {base}: source {source.name!r} was a {was} and is a {now} now; give it another name, or begin with a new base"
            )


def keyed_states(graph: Graph, state: LedgerState, discard: tuple[str, ...], base: str) -> dict[str, str]:
    """The columns of what keyed operators remember, those that a base has in its order; refuses what cannot be followed."""
    found: dict[str, str] = {}
    for operator in graph.operators:
        if operator.keyed is None:
            continue
        enters, known = graph.input_schema(operator.name), state.states.get(operator.name)
        new = KeyedColumns(pa.schema([enters.field(name) for name in operator.keyed.key]), operator.keyed.schema)
        if known is not None and operator.name not in discard:
            before = KeyedColumns.decode(known)
            followed = before.followed_by(new)
            if followed is None:
                raise SettingError(
                    f"base {base}: {operator.name!r} remembers {columns(before.state)} of every {columns(before.key)}, and now "
                    f"{columns(new.state)} of every {columns(new.key)}; columns may be added, not changed or removed: put them back, "
                    f"or run with discard=({operator.name!r},), which forgets all keys"
                )
            new = followed
        found[operator.name] = new.encode()
    for name in sorted(set(state.states) - set(found) - {*discard}):
        raise SettingError(
            f"base {base}: {name!r} remembers something of its keys, and this topology has no keyed operator {name!r}; put it back, "
            f"or run with discard=({name!r},), which forgets all keys"
        )
    return found


def columns(schema: pa.Schema) -> str:
    """As a user declares them."""
    return ", ".join(f"{field.name} {field.type}" for field in schema if field.name != DUE)


def _dropped(
    state: LedgerState, names: tuple[str, ...]
) -> tuple[list[tuple[str, int, int]], dict[str, OperatorCounts]]:
    """Everything that waits for these operators is dropped, and counted; what waits to be read has finished before."""
    consumed: list[tuple[str, int, int]] = []
    counts: dict[str, OperatorCounts] = {}
    for lane, queue in state.lanes.items():
        if lane.operator in names and len(queue):
            consumed.append((lane.operator, lane.lane, len(queue)))
            if lane.operator not in (*state.outputs, DEAD_LETTERS):
                counts.setdefault(lane.operator, OperatorCounts()).overflowed += len(queue)
    return consumed, counts


def _size(graph: Graph, name: str, state: LedgerState, start: int | None) -> int:
    replicas = graph[name].replicas
    known = state.sizes.get(name)
    if state.entry < 0:
        return rules.first_size(replicas.least, replicas.most, replicas.start, start)
    if known is None:
        return replicas.start
    return min(max(known, replicas.least), replicas.most)
