"""A naive model of a base: rows one by one, states key by key, rebuilt from the entries that count."""

import json
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import ipc

from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.lanes.entries import Entry, Given
from elastream.lanes.runs import unpacked
from elastream.lanes.segments import FOLDER, LaneId, Slice, decode_schema
from elastream.lanes.state import LedgerState
from elastream.state.changelog import changes_in
from elastream.testing.simulation.storage import Disk
from elastream.testing.simulation.workload import fold
from elastream.topology import DUE
from elastream.topology.groupings import KEY_GROUPS

Row = dict[str, Any]
KeyState = tuple[int, int]
"""How many tuples a key has had, and a number that depends on their order."""

ALL_GROUPS = frozenset(range(KEY_GROUPS))


class Violation(Exception):
    """Something that must hold does not."""


@dataclass(frozen=True)
class Tuple:
    """One row in a lane."""

    place: tuple[str, int, int]
    """Segment, offset, number in the batch."""
    group: int
    row: Row


@dataclass
class Batches:
    """Batches as they lie on the disk, read once."""

    disk: Disk
    _rows: dict[tuple[str, int], list[Row]] = field(default_factory=dict)

    def rows(self, piece: Slice, schemas: dict[Any, str]) -> list[Row]:
        place = piece.segment, piece.offset
        rows = self._rows.get(place)
        if rows is None:
            batch = self.batch(piece, _schema(schemas[piece.schema]))
            rows = self._rows[place] = batch.drop_columns([DUE]).to_pylist()
        return rows

    def batch(self, piece: Slice, schema: pa.Schema) -> pa.RecordBatch:
        data = self.disk.files.get(f"{FOLDER}/{piece.segment}")
        if data is None:
            raise Violation(f"an entry names segment {piece.segment}, which is not there")
        part = bytes(data[piece.offset : piece.offset + piece.length])
        return ipc.read_record_batch(pa.py_buffer(part), schema)


class Model:
    """The base as of the last entry that counts."""

    def __init__(self, batches: Batches, keyed: frozenset[str]) -> None:
        self._batches = batches
        self._keyed = keyed
        """Operators of which states are recounted."""
        self.replica = LedgerState()
        """The same by the engine's own code."""
        self.lanes: dict[LaneId, deque[Tuple]] = defaultdict(deque)
        self.consumed: Counter[LaneId] = Counter()
        self.journal: dict[tuple[str, int], list[tuple[int, bytes, bytes | None]]] = defaultdict(list)
        """Per operator and key group: the number of each change, the key, its record."""
        self.records: dict[tuple[str, int], dict[bytes, bytes]] = defaultdict(dict)
        """The same as it is now."""
        self.keys: dict[str, dict[Any, KeyState]] = defaultdict(dict)
        """Per operator and key, what its tuples amount to."""
        self.given: dict[LaneId, Given] = {}
        self.came: dict[str, Counter[Any]] = defaultdict(Counter)
        """Per operator, the ids of rows that were put into its lanes."""
        self.went: dict[str, Counter[Any]] = defaultdict(Counter)
        """Per operator, the ids of rows that it has consumed."""
        self.buried: dict[str, Counter[Any]] = defaultdict(Counter)
        """Per operator, the ids of rows in the dead letters."""
        self.taken: list[tuple[LaneId, int, list[Tuple]]] = []
        """What the last entry consumed: lane, number of the first, rows."""

    def apply(self, entry: Entry) -> None:
        """Follow one entry, in two ways; they must not differ."""
        numbers = {name: log.next_number for name, log in self.replica.logs.items()}
        try:
            self.replica.apply(entry)
        except (ValueError, LookupError) as error:
            raise Violation(f"entry {entry.number} does not fit what was before it: {error}") from error
        letters = self._append(entry)
        self.taken = []
        for operator, number, rows in entry.consumed:
            self._consume(LaneId(operator, number), rows, letters)
        self._change(entry, numbers)
        for operator, moved in entry.owners.items():
            self._move(operator, moved)
        for given in entry.given:
            lane = LaneId(given.operator, given.lane)
            self.given[lane] = given
        self._compare(entry)

    def group_as_of(self, operator: str, group: int, since: int) -> dict[bytes, bytes]:
        """The records of a group after all changes before number `since`."""
        records: dict[bytes, bytes] = {}
        for number, key, record in self.journal[operator, group]:
            if number < since:
                _set(records, key, record)
        return records

    # -- inside

    def _append(self, entry: Entry) -> dict[str, Counter[Any]]:
        """Gives the ids of rows that became dead letters, by operator."""
        letters: dict[str, Counter[Any]] = defaultdict(Counter)
        for operator, number, piece in entry.appended:
            rows = self._batches.rows(piece, self.replica.schemas)[piece.first : piece.first + piece.rows]
            if len(rows) != piece.rows:
                raise Violation(f"entry {entry.number}: {piece.segment} has {len(rows)} of {piece.rows} rows")
            groups = [group for group, count in unpacked(piece.runs) for _ in range(count)]
            lane = self.lanes[LaneId(operator, number)]
            for at, row in enumerate(rows, piece.first):
                lane.append(Tuple((piece.segment, piece.offset, at), groups[at] if groups else -1, row))
                if operator == DEAD_LETTERS:
                    letters[row["operator"]][_id(json.loads(row["row"]))] += 1
                else:
                    self.came[operator][_id(row)] += 1
        for name, ids in letters.items():
            self.buried[name].update(ids)
        return letters

    def _consume(self, lane: LaneId, rows: int, letters: dict[str, Counter[Any]]) -> None:
        queue = self.lanes[lane]
        if rows > len(queue):
            raise Violation(f"{lane}: {rows} rows consumed of {len(queue)}")
        taken = [queue.popleft() for _ in range(rows)]
        self.taken.append((lane, self.consumed[lane], taken))
        self.consumed[lane] += rows
        self.given.pop(lane, None)
        failed = letters.get(lane.operator)
        states = self.keys[lane.operator] if lane.operator in self._keyed else None
        for one in taken:
            identity = _id(one.row)
            if failed and failed[identity]:
                failed[identity] -= 1
                continue
            self.went[lane.operator][identity] += 1
            if states is not None:
                count, order = states.get(one.row["key"], (0, 0))
                states[one.row["key"]] = count + 1, fold(order, one.row["id"])

    def _change(self, entry: Entry, numbers: dict[str, int]) -> None:
        for change in entry.changes:
            operator, piece = change.operator, change.slice
            number = numbers[operator]
            numbers[operator] += 1
            batch = self._batches.batch(piece, _schema(self.replica.schemas[piece.schema]))
            batch = batch.slice(piece.first, piece.rows)
            for group, key, record in changes_in(batch, piece, ALL_GROUPS):
                self.journal[operator, group].append((number, key, record))
                _set(self.records[operator, group], key, record)

    def _move(self, operator: str, moved: dict[int, int]) -> None:
        givers = sorted(lane for lane in self.lanes if lane.operator == operator)
        leaving: list[tuple[int, Tuple]] = []
        for lane in givers:
            kept: deque[Tuple] = deque()
            for one in self.lanes[lane]:
                goes = one.group in moved and moved[one.group] != lane.lane
                if goes:
                    leaving.append((moved[one.group], one))
                else:
                    kept.append(one)
            self.lanes[lane] = kept
        for number, one in leaving:
            self.lanes[LaneId(operator, number)].append(one)

    def _compare(self, entry: Entry) -> None:
        for lane, queue in self.replica.lanes.items():
            mine = self.lanes[lane]
            if len(mine) != len(queue) or self.consumed[lane] != queue.consumed:
                raise Violation(f"entry {entry.number}: {lane} has {len(queue)} rows, recounted {len(mine)}")


_schema = lru_cache(maxsize=256)(decode_schema)


def _id(row: Row) -> Any:
    """What a row is counted by."""
    return row["id"] if "id" in row else tuple(row.values())


def _set(records: dict[bytes, bytes], key: bytes, record: bytes | None) -> None:
    if record is None:
        records.pop(key, None)
    else:
        records[key] = record


def key_in(data: bytes) -> Any:
    """A key as the state stores it."""
    return msgspec.msgpack.decode(data)[0]


def columns_in(record: bytes) -> tuple[Any, Any]:
    """The two columns of a record."""
    values = msgspec.msgpack.decode(record)
    return values[-2], values[-1]
