"""The audit of keyed state: snapshots of key groups, changes, and the checksums of what hosts had are compared.

Every change tells the checksums of its groups, before and after, in the host that made it, and every snapshot that of its group.
So the ledger's entries show a snapshot that lacks changes before it, and a host that went on from another state than the
ledger's, also when their segments are gone. What is remembered now is replayed, too: the last snapshots and all changes behind them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import pyarrow as pa

from elastream.errors import Damaged
from elastream.lanes.entries import Entry
from elastream.lanes.runs import cut, unpacked
from elastream.lanes.segments import Slice
from elastream.lanes.state import LedgerState
from elastream.lanes.state_log import Change, StateLog
from elastream.lanes.state_sums import GroupSums, record_sum, recorded, unpacked_sums

MOST_KEYS = 2_000_000
"""Keys that are replayed together, about: an audit holds one number for each in memory."""

Read = Callable[[Slice], pa.RecordBatch]


def log_problems(operator: str, log: StateLog) -> list[str]:
    """What a log of states lacks, or has too much: a change between two others, keys of a group that was written whole."""
    problems = []
    numbers = [*(change.number for change in log.changes), log.next_number]
    gap = next((number + 1 for number, after in pairwise(numbers) if after != number + 1), None)
    if gap is not None:
        problems.append(f"state of {operator}: change {gap} is not there")
    for change in log.changes:
        runs = sum(rows for _, rows in cut(change.slice.runs, change.slice.first, change.slice.rows))
        if runs != change.slice.rows:
            problems.append(
                f"state of {operator}: change {change.number} tells the key groups of {runs} of {change.slice.rows} rows"
            )
    for group, whole in log.wholes.items():
        rows = sum(piece.rows for piece in whole.slices)
        if rows != whole.keys:
            problems.append(f"state of {operator}: key group {group} has {rows} of {whole.keys} keys")
        if whole.since > log.next_number:
            problems.append(
                f"state of {operator}: the snapshot of key group {group} is as of change {whole.since}, but the log ends before "
                f"change {log.next_number}"
            )
    return problems


def snapshot_problems(entries: Iterable[Entry], state: LedgerState) -> list[str]:
    """Snapshots and changes of key groups that were not what the ledger says, by the checksums in the entries."""
    kept = _up_to(state.entry, entries)
    changes: Counter[str] = Counter()
    for entry in kept:
        for operator in entry.forgotten:
            changes[operator] = 0
        changes.update(change.operator for change in entry.changes)
    forgotten = {operator for entry in kept for operator in entry.forgotten}
    # Before an operator was forgotten its changes had numbers of which nothing is known.
    first = {name: log.next_number - changes[name] for name, log in state.logs.items() if name not in forgotten}
    history = _History(first)
    problems: list[str] = []
    for entry in kept:
        problems += history.follow(entry)
    return problems


def _up_to(number: int, entries: Iterable[Entry]) -> list[Entry]:
    """The entries that lead to this one without a gap; a driver that runs may have written more."""
    kept: list[Entry] = []
    for entry in reversed(list(entries)):
        if entry.number == number - len(kept):
            kept.append(entry)
    return kept[::-1]


class _History:
    """The checksums that changes and snapshots tell, by operator, key group and number."""

    def __init__(self, numbers: dict[str, int]) -> None:
        """`numbers`: per operator of which it is known, that of the next change."""
        self._numbers = numbers
        self._known: dict[tuple[str, int], list[tuple[int, int]]] = {}
        """Per group, (first number after it, checksum), the newest last."""

    def follow(self, entry: Entry) -> list[str]:
        """The problems of one entry."""
        for operator in entry.forgotten:
            self._numbers[operator] = 0
            self._known = {place: known for place, known in self._known.items() if place[0] != operator}
        problems = []
        for whole in (whole for whole in entry.wholes if whole.operator in self._numbers):
            place = whole.operator, whole.group
            known = self._known.get(place, [])
            since = whole.since if whole.since >= 0 else self._numbers[whole.operator]
            after, checksum = next((one for one in reversed(known) if one[0] <= since), (0, 0))
            if checksum and whole.before and checksum != whole.before:
                problems.append(
                    f"state of {whole.operator}: the snapshot of key group {whole.group} in entry {entry.number}, as of change "
                    f"{since}, is not what the changes before {after} made of it; state was lost: start again from a copy of the "
                    "base that is older"
                )
            self._known[place] = [(since, whole.checksum), *(one for one in known if one[0] > since)]
        for change in (change for change in entry.changes if change.operator in self._numbers):
            number = self._numbers[change.operator]
            self._numbers[change.operator] = number + 1
            for group, (before, checksum) in _sums_of(Change(number, change.slice, change.sums)):
                known = self._known.setdefault((change.operator, group), [(0, 0)])
                if before and known[-1][1] and before != known[-1][1]:
                    problems.append(
                        f"state of {change.operator}: the host that made change {number} in entry {entry.number} had another key group "
                        f"{group} than the changes and snapshots before it made; state was lost: start again from a copy of the base "
                        "that is older"
                    )
                known.append((number + 1, checksum))
        return problems


def replay_problems(operator: str, log: StateLog, read: Read, most_keys: int = MOST_KEYS) -> list[str]:
    """Snapshots and changes that are kept, replayed, against the checksums that they tell."""
    problems: list[str] = []
    groups = sorted({*log.wholes, *(group for change in log.changes for group, _ in unpacked(change.slice.runs))})
    try:
        for some in _portions(groups, log, most_keys):
            problems += _replayed(operator, log, some, read)
    except Damaged:
        # Each segment that is needed and cannot be read is named elsewhere.
        return problems
    return problems


def _replayed(operator: str, log: StateLog, groups: frozenset[int], read: Read) -> list[str]:
    contents = {group: _Content(group) for group in groups}
    problems: dict[int, str] = {}
    for group in groups:
        whole = log.whole(group)
        for piece in whole.slices:
            for _, key, record in _rows(read(piece), piece, groups):
                contents[group].put(key, record)
        if whole.checksum and whole.checksum != contents[group].checksum:
            problems[group] = (
                f"state of {operator}: the snapshot of key group {group} does not have the checksum it tells"
            )
    for change in log.changes:
        behind = frozenset(
            g for g, _ in unpacked(change.slice.runs) if g in groups and log.whole(g).since <= change.number
        )
        if not behind:
            continue
        for group, key, record in _rows(read(change.slice), change.slice, behind):
            contents[group].put(key, record)
        for group, (_, checksum) in _sums_of(change):
            if group in behind and checksum and checksum != contents[group].checksum:
                problems.setdefault(
                    group,
                    f"state of {operator}: key group {group} after change {change.number} is not what the host had that made the "
                    "change; state was lost: start again from a copy of the base that is older",
                )
    return [problems[group] for group in sorted(problems)]


class _Content:
    """The keys of a group, each with the checksum of its record."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._sums: dict[bytes, int] = {}
        self._total = 0

    @property
    def checksum(self) -> int:
        return recorded(self._total)

    def put(self, key: bytes, record: bytes | None) -> None:
        self._total -= self._sums.pop(key, 0)
        if record is not None:
            self._sums[key] = record_sum(self._group, key, record)
            self._total += self._sums[key]


def _sums_of(change: Change) -> Iterator[tuple[int, GroupSums]]:
    """The groups of a change with their checksums, as far as they are recorded."""
    runs = [group for group, _ in unpacked(change.slice.runs)]
    sums = list(unpacked_sums(change.sums)) or [GroupSums(0, 0)] * len(runs)
    known: dict[int, GroupSums] = {}
    for group, (before, after) in zip(runs, sums, strict=True):
        # Of a group with several runs the first tells what was before.
        known[group] = GroupSums(known[group].before if group in known else before, after)
    yield from known.items()


def _rows(batch: pa.RecordBatch, piece: Slice, groups: frozenset[int]) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The rows of some groups: (group, key, record), where no record means that the key was forgotten."""
    at = 0
    for group, rows in cut(piece.runs, piece.first, piece.rows):
        if group in groups:
            keys, records = (batch.column(place).slice(at, rows).to_pylist() for place in (0, 1))
            for key, record in zip(keys, records, strict=True):
                yield group, key, record
        at += rows


def _portions(groups: list[int], log: StateLog, most_keys: int) -> Iterator[frozenset[int]]:
    some: list[int] = []
    keys = 0
    for group in groups:
        if some and keys + log.whole(group).keys > most_keys:
            yield frozenset(some)
            some, keys = [], 0
        some.append(group)
        keys += log.whole(group).keys
    if some:
        yield frozenset(some)
