"""What a host remembers: the states of the key groups that it serves, and copies of others'."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from elastream.lanes.segments import Slice
from elastream.lanes.state_log import Change
from elastream.lanes.state_sums import GroupSums, recorded
from elastream.state.changelog import changes_in, to_batch
from elastream.state.records import RecordCodec
from elastream.state.store import CLOCK, WATERMARK, Facts, StateStore
from elastream.state.store import Change as KeyChange

MOST_TOGETHER = 100_000
"""Keys that are learned in one change of the store: of those that changed often, only the newest is written."""

Read = Callable[[Slice], pa.RecordBatch]


class HostState:
    """Of one process. Works of different lanes never touch the same key group."""

    def __init__(
        self, codecs: Mapping[str, RecordCodec], folder: str | None = None, most_bytes: int | None = None
    ) -> None:
        self.codecs = codecs
        timers = {name: codec.timers_of for name, codec in codecs.items() if codec.state.on_timer is not None}
        self.store = StateStore(list(codecs), folder, timers, most_bytes)

    def learn(
        self,
        operator: str,
        since: Mapping[int, int],
        anew: frozenset[int],
        wholes: list[Slice],
        changes: list[Change],
        read: Read,
    ) -> None:
        """`since`: per key group, the first change that is not known yet; `anew`: groups that begin with what was written whole."""
        records: dict[int, list[tuple[bytes, bytes]]] = {group: [] for group in anew}
        for piece in wholes:
            for group, key, record in changes_in(read(piece), piece, anew):
                assert record is not None
                records[group].append((key, record))
        for group, found in records.items():
            self.store.replace_group(operator, group, found)
        newest: dict[tuple[int, bytes], bytes | None] = {}
        for change in changes:
            wanted = frozenset(group for group, number in since.items() if number <= change.number)
            newest.update(((group, key), r) for group, key, r in changes_in(read(change.slice), change.slice, wanted))
            if len(newest) >= MOST_TOGETHER:
                self._write(operator, newest)
                newest = {}
        self._write(operator, newest)

    def _write(self, operator: str, newest: dict[tuple[int, bytes], bytes | None]) -> None:
        """In the order of the store: neighbours lie on one page."""
        if newest:
            self.store.write(operator, ((group, key, newest[group, key]) for group, key in sorted(newest)))

    def first_timers(self, operator: str, groups: Sequence[int]) -> tuple[float | None, float | None]:
        """When a key of some groups is to be woken next, by the clock and by the watermark; None: never."""
        first = [self.store.first_timer(operator, kind, groups) for kind in (CLOCK, WATERMARK)]
        return first[0], first[1]

    def forget(self, operator: str, groups: list[int]) -> None:
        if groups:
            self.store.forget(operator, groups)

    def facts(self, operator: str, group: int) -> Facts:
        return self.store.facts(operator, group)

    def whole(self, operator: str, group: int, now_s: float) -> tuple[pa.RecordBatch, bytes, Facts]:
        """All of a group as a batch; keys that are too old are left out, and forgotten."""
        codec = self.codecs[operator]
        pairs = self.store.group(operator, group)
        if codec.state.ttl_s is not None:
            old = [key for key, data in pairs if codec.is_expired_bytes(data, now_s)]
            if old:
                self.store.write(operator, [(group, key, None) for key in old])
                pairs = self.store.group(operator, group)
        changes: list[KeyChange] = [(group, key, record) for key, record in pairs]
        batch, runs = to_batch(changes)
        return batch, runs, self.store.facts(operator, group)

    def close(self) -> None:
        self.store.close()


class StateChanges:
    """What one work changes in the states of one operator. Nothing of it is in the store before `apply`."""

    def __init__(self, state: HostState, operator: str, now_s: float) -> None:
        self._state = state
        self._operator = operator
        self.codec = state.codecs[operator]
        self.now_s = now_s
        self._changed: dict[tuple[int, bytes], bytes | None] = {}

    def get_many(self, keys: list[tuple[int, bytes]]) -> list[bytes | None]:
        """The records of some keys as they are by now."""
        changed = self._changed
        with self._state.store.reading(self._operator) as reading:
            return [changed[key] if key in changed else reading.get(*key) for key in keys]

    def due(self, kind: int, groups: Sequence[int], until_s: float) -> list[tuple[float, int, bytes]]:
        """Keys that are to be woken by then, as the store has them: those of this work come with the next."""
        return self._state.store.due(self._operator, kind, groups, until_s)

    def update(self, changed: dict[tuple[int, bytes], bytes | None]) -> None:
        self._changed.update(changed)

    def __bool__(self) -> bool:
        return bool(self._changed)

    def batch(self) -> tuple[pa.RecordBatch, bytes]:
        """As a changelog has them."""
        return to_batch((group, key, record) for (group, key), record in self._changed.items())

    def apply(self) -> dict[int, GroupSums]:
        """They are written where they last: now the host knows them too. Gives the checksums of the groups that changed."""
        groups = sorted({group for group, _ in self._changed})
        before = self._checksums(groups)
        self._state.store.write(self._operator, ((group, key, r) for (group, key), r in sorted(self._changed.items())))
        return {g: GroupSums(*pair) for g, *pair in zip(groups, before, self._checksums(groups), strict=True)}

    def _checksums(self, groups: list[int]) -> list[int]:
        return [recorded(self._state.facts(self._operator, group).checksum) for group in groups]
