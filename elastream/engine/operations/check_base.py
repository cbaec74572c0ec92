"""A preview of a run: what would become of a base with an application. Nothing is changed."""

from dataclasses import dataclass

from elastream.engine.driver.opening import keyed_states, refusals
from elastream.engine.driver.resumed import in_words
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import SettingError
from elastream.lanes.state import LedgerState
from elastream.topology import Graph, Kind


@dataclass(frozen=True)
class Preview:
    """Lines for people, and the reasons why the run would be refused."""

    lines: tuple[str, ...]
    refused: tuple[str, ...]


def preview(graph: Graph, state: LedgerState, base: str, discard: tuple[str, ...] = ()) -> Preview:
    """Preview the start of `run(graph, base, discard=discard)`."""
    refused = list(refusals(graph, state, discard, base))
    try:
        keyed_states(graph, state, discard, base)
    except SettingError as error:
        refused.append(str(error))
    lines = [in_words(graph, state, base) or f"base {base} is new: the run begins at the beginning"]
    if state.entry >= 0:
        lines += _sources(graph, state)
        lines += _operators(graph, state, discard)
        lines += _kept(state)
    return Preview(tuple(lines), tuple(refused))


def _sources(graph: Graph, state: LedgerState) -> list[str]:
    here = {source.name for source in graph.sources}
    lines = [f"source {name}: new, it is read from its beginning" for name in sorted(here - set(state.sources))]
    lines += [
        f"source {name}: no longer in the application; its position is kept"
        for name in sorted(set(state.sources) - here)
    ]
    return lines


def _operators(graph: Graph, state: LedgerState, discard: tuple[str, ...]) -> list[str]:
    lines = []
    for operator in graph.served:
        if operator.kind is Kind.OUTPUT:
            continue
        name, queued = operator.name, state.queued(operator.name)
        if name not in state.sizes:
            lines.append(f"operator {name}: new, begins with {_replicas(operator.replicas.start)}")
            continue
        size = min(max(state.sizes[name], operator.replicas.least), operator.replicas.most)
        changed = "" if size == state.sizes[name] else f" (had {state.sizes[name]}, outside of its limits now)"
        if name in discard:
            waits = f"{queued:,} tuples are dropped"
        else:
            waits = f"{queued:,} tuples wait" if queued else "nothing waits"
        lines.append(f"operator {name}: goes on with {_replicas(size)}{changed}, {waits}")
    known = {str(operator.name) for operator in graph.served}
    for gone in sorted(set(state.sizes) - known - set(state.outputs)):
        queued = state.queued(gone)
        fate = "are dropped" if gone in discard else "wait for it"
        lines.append(
            f"operator {gone}: no longer in the application, "
            + (f"{queued:,} tuples {fate}" if queued else "nothing waits for it")
        )
    return lines


def _kept(state: LedgerState) -> list[str]:
    """Rows in outputs, and dead letters."""
    lines = [
        f"output {name}: {rows:,} rows are kept for readers" for name in state.outputs if (rows := state.queued(name))
    ]
    letters = sum(len(queue) for lane, queue in state.lanes.items() if lane.operator == DEAD_LETTERS)
    return [*lines, f"{letters:,} dead letters are kept"] if letters else lines


def _replicas(number: int) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"
