"""States read from outside a run: as of the last entry, while a driver writes them."""

import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from elastream.errors import Damaged, SettingError
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import Slice
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store
from elastream.routing.key_groups import groups_of
from elastream.state.changelog import SCHEMA, changes_in
from elastream.state.columns import KeyedColumns
from elastream.state.records import RecordCodec
from elastream.topology import KeyedState
from elastream.topology.groupings import KEY_GROUPS

TRIES = 5
"""A driver that writes groups whole may remove what is being read; then it is read again."""


Pairs = dict[tuple[int, bytes], bytes]
"""Records by key group and key."""


@dataclass(frozen=True)
class StateSummary:
    """What one operator remembers."""

    operator: str
    key: str
    columns: str
    keys: int
    bytes: int
    changes: int
    """Changes since groups were last written whole."""
    owners: list[int]
    """The lane of each key group."""
    entry: int
    at_s: float


def state_table(store: Store, operator: str) -> pa.Table:
    """Everything that an operator remembers, a row per key."""
    return _read(store, operator, frozenset(range(KEY_GROUPS)))


def state_of_key(store: Store, operator: str, key: tuple[Any, ...]) -> dict[str, Any] | None:
    """What an operator remembers of one key; None when it knows nothing of it. Values may be given as text."""
    columns = _columns(LedgerReader(store).refresh(), operator, store)
    if len(key) != len(columns.key):
        raise SettingError(
            f"state of {operator!r}: its key is {', '.join(columns.key.names)}, got {len(key)} values; give one for each"
        )
    try:
        arrays = [pa.array([value]).cast(field.type) for value, field in zip(key, columns.key, strict=True)]
    except (pa.ArrowException, ValueError) as error:
        raise SettingError(f"state of {operator!r}: {', '.join(map(str, key))} cannot be its key: {error}") from None
    wanted = pa.RecordBatch.from_arrays(arrays, schema=columns.key)
    group = int(groups_of(wanted, tuple(columns.key.names))[0])
    for row in _read(store, operator, frozenset({group})).to_pylist():
        if all(row[name] == value for name, value in wanted.to_pylist()[0].items()):
            found: dict[str, Any] = row
            return found
    return None


def summaries(store: Store) -> list[StateSummary]:
    """Of all keyed operators of a base."""
    found = []
    for operator in LedgerReader(store).refresh().states:
        state, pairs = _settled(store, operator, frozenset(range(KEY_GROUPS)))
        columns = _columns(state, operator, store)
        found.append(
            StateSummary(
                operator,
                _shown(columns.key),
                _shown(columns.state),
                len(pairs),
                sum(len(key) + len(record) for (_, key), record in pairs.items()),
                len(state.logs[operator].changes),
                state.owners[operator],
                state.entry,
                state.at_s,
            )
        )
    return found


def _read(store: Store, operator: str, groups: frozenset[int]) -> pa.Table:
    state, pairs = _settled(store, operator, groups)
    columns = _columns(state, operator, store)
    codec = RecordCodec(KeyedState(tuple(columns.key.names), columns.state), columns.key, columns.state.names)
    return codec.to_rows(((key, record) for (_, key), record in pairs.items()), time.time())


def _settled(store: Store, operator: str, groups: frozenset[int]) -> tuple[LedgerState, Pairs]:
    """A ledger and what it says of some key groups; read again when the driver removes what is superseded meanwhile."""
    for _ in range(TRIES - 1):
        state = LedgerReader(store).refresh()
        _columns(state, operator, store)
        try:
            return state, _pairs(store, state, operator, groups)
        except Damaged:
            if LedgerReader(store).refresh().entry == state.entry:
                raise
    state = LedgerReader(store).refresh()
    return state, _pairs(store, state, operator, groups)


def _pairs(store: Store, state: LedgerState, operator: str, groups: frozenset[int]) -> Pairs:
    """Keys and their records, by group."""
    log, reader = state.logs[operator], SegmentReader(store)

    def read(piece: Slice) -> pa.RecordBatch:
        return reader.read(piece, SCHEMA)

    found: dict[tuple[int, bytes], bytes] = {}
    try:
        for group in sorted(groups):
            for piece in log.whole(group).slices:
                found.update(
                    {
                        (g, key): record
                        for g, key, record in changes_in(read(piece), piece, groups)
                        if record is not None
                    }
                )
        for change in log.since(groups, 0):
            newer = frozenset(group for group in groups if log.whole(group).since <= change.number)
            for group, key, record in changes_in(read(change.slice), change.slice, newer):
                if record is None:
                    found.pop((group, key), None)
                else:
                    found[group, key] = record
    finally:
        reader.close()
    return found


def _columns(state: LedgerState, operator: str, store: Store) -> KeyedColumns:
    text = state.states.get(operator)
    if text is None:
        names = ", ".join(sorted(state.states)) or "none"
        raise SettingError(f"base {store}: no keyed operator {operator!r}; those that remember something: {names}")
    return KeyedColumns.decode(text)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
