"""What must hold after every entry of a simulated run, at every delivery, and at the end.

To add an invariant: write a method that raises `Violation`, and call it from `_check`, `delivered` or `at_end`.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from elastream.engine.handle import Run
from elastream.engine.worker.delivery import Delivery
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry, Snapshot
from elastream.lanes.ledger_files import log_name
from elastream.lanes.records import MAGIC, begin_of, records
from elastream.lanes.runs import unpacked
from elastream.lanes.segments import FOLDER, LaneId, decode_schema
from elastream.state.changelog import changes_in
from elastream.testing.simulation.cluster import SimulatedHosts
from elastream.testing.simulation.model import ALL_GROUPS, Batches, Model, Violation, columns_in, key_in
from elastream.testing.simulation.recount import check_results
from elastream.testing.simulation.storage import Disk
from elastream.testing.simulation.workload import Workload
from elastream.topology import DUE

_FILE = re.compile(r"ledger/(\d{8})-(\d{12})\.(log|entry)")
_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode

SINKS = frozenset(("counted", "woken", "windows", "plain"))
KEYED = frozenset(("count", "timer"))


class Invariants:
    """Follows the files of a ledger as a reader would, and checks every entry that counts."""

    def __init__(self, workload: Workload, disk: Disk, record: Callable[[str, str], None]) -> None:
        self._workload = workload
        self._disk = disk
        self._record = record
        self._batches = Batches(disk)
        self._counted: list[Entry] = []
        self._epoch = 0
        self._read: dict[str, int] = {}
        """How far each log was read."""
        self.model = self._new_model()
        self.deliveries: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        """Per delivery id, the newest entry when it was made first, and its rows."""
        self.entries = 0

    # -- called by the world

    def file_changed(self, operation: str, name: str, run: Run | None, hosts: SimulatedHosts | None) -> None:
        """A file of the base was written, appended to or deleted by the driver of this run, or by a host."""
        if operation == "delete":
            segment = name.removeprefix(f"{FOLDER}/")
            if segment != name and self.model.replica.names(segment):
                raise Violation(f"segment {segment} is deleted, and entry {self.model.replica.entry} needs it")
            return
        match = _FILE.fullmatch(name)
        if match is None or operation not in ("append", "write"):
            return
        epoch, number, kind = int(match[1]), int(match[2]), match[3]
        data = bytes(self._disk.files[name])
        if kind == "log" and operation == "write":
            self._begin_log(name, epoch, number, data)
            return
        at = self._read.get(name, 0) if kind == "log" else begin_of(data, name)
        for record in records(data, name, at):
            self._read[name] = record.end
            if epoch == self._epoch:
                self._add(_decode_entry(record.payload), run, hosts)
            else:
                self._record("ledger", f"entry of epoch {epoch} is written, which nobody reads")

    def delivered(self, batch: pa.RecordBatch, delivery: Delivery) -> None:
        """A sink has got rows: an entry must have said so, and again the same rows come under the same id."""
        rows = batch.drop_columns([DUE]).to_pylist()
        self._record("sink", f"{delivery.id} gets {len(rows)} rows")
        before = self.deliveries.setdefault(delivery.id, (self.model.replica.entry, rows))
        if before[1] != rows:
            raise Violation(f"delivery {delivery.id}: {len(rows)} rows, and before it had {len(before[1])} others")

    def at_end(self) -> None:
        """The run is drained: everything must be recounted."""
        check_results(self._workload, self.model, {key: rows for key, (_, rows) in self.deliveries.items()})

    def no_file_left_over(self) -> None:
        """When a base was opened once more, it has the files that its ledger names, and no others."""
        named = self.model.replica.segments()
        left = [name for name in self._disk.files.folders.get(FOLDER, ()) if name not in named]
        left += [f"claims/{name}" for name in self._disk.files.folders.get("claims", ())]
        left += self._disk.files.within("ledger", finished=False)
        if left:
            raise Violation(f"{len(left)} files are left over, such as {left[0]}")

    # -- the ledger

    def _new_model(self) -> Model:
        return Model(self._batches, KEYED & {*self._workload.branches})

    def _begin_log(self, name: str, epoch: int, number: int, data: bytes) -> None:
        record = next(iter(records(data, name, len(MAGIC))))
        self._read[name] = record.end
        if epoch < self._epoch:
            self._record("ledger", f"{name} is written, which nobody reads")
            return
        if epoch > self._epoch:
            self._epoch = epoch
            self._take_back(number)
        snapshot = _decode_snapshot(record.payload)
        self._record("ledger", f"{log_name(epoch, number)} begins")
        if snapshot.entry != self.model.replica.entry:
            raise Violation(f"{name} begins after entry {snapshot.entry}, and {self.model.replica.entry} was committed")
        mine, theirs = _facts(self.model.replica.snapshot()), _facts(snapshot)
        for what, value in mine.items():
            if theirs[what] != value:
                raise Violation(f"{name}: the snapshot's {what} are not what the entries before it say")

    def _take_back(self, number: int) -> None:
        """A new epoch begins at an entry: those from there on, of an older epoch, do not count."""
        gone = [entry for entry in self._counted if entry.number >= number]
        if not gone:
            return
        self._record("ledger", f"{len(gone)} entries do not count")
        for identity, (newest, _) in self.deliveries.items():
            if newest >= number:
                raise Violation(f"delivery {identity} is of entry {newest}, which does not count")
        self._counted = [entry for entry in self._counted if entry.number < number]
        self.model = self._new_model()
        for entry in self._counted:
            self.model.apply(entry)

    def _add(self, entry: Entry, run: Run | None, hosts: SimulatedHosts | None) -> None:
        before = dict(self.model.given)
        self.model.apply(entry)
        self._counted.append(entry)
        self.entries += 1
        self._check(entry, before, run, hosts)

    # -- invariants of an entry

    def _check(self, entry: Entry, given: dict[LaneId, Any], run: Run | None, hosts: SimulatedHosts | None) -> None:
        self._check_accounts(entry)
        self._check_owners(entry)
        self._check_sinks(entry, given)
        self._check_wholes(entry)
        self._check_states(entry)
        if run is not None and hosts is not None:
            self._check_live(entry, run, hosts)

    def _check_accounts(self, entry: Entry) -> None:
        """entered = finished + dropped + queued."""
        replica, totals = self.model.replica, OperatorCounts()
        for counts in replica.totals.values():
            totals.add(counts)
        queued = sum(replica.queued(name) for name in replica.sizes if name not in replica.outputs)
        if totals.entered != totals.finished + totals.dropped + queued:
            raise Violation(
                f"entry {entry.number}: entered {totals.entered} is not finished {totals.finished} + dropped {totals.dropped} "
                f"+ queued {queued}"
            )

    def _check_owners(self, entry: Entry) -> None:
        """What waits of a key group waits in the lane that owns it."""
        changed = {LaneId(operator, number) for operator, number, _ in entry.appended}
        for lane in changed:
            owners = self.model.replica.owners.get(lane.operator)
            if owners is not None and any(
                one.group >= 0 and owners[one.group] != lane.lane for one in self.model.lanes[lane]
            ):
                raise Violation(f"entry {entry.number}: {lane} has rows of key groups that it does not own")

    def _check_sinks(self, entry: Entry, given: dict[LaneId, Any]) -> None:
        """A sink has consumed what it was given before, and has got it."""
        for lane, first, rows in self.model.taken:
            if lane.operator not in SINKS:
                continue
            if lane not in given:
                if self._was_discarded(entry, lane):
                    continue
                raise Violation(f"entry {entry.number}: {lane} consumed {len(rows)} rows that it was not given")
            buried = entry.counts.get(lane.operator)
            if buried is not None and buried.failed:
                continue
            got = [
                delivered
                for key, (_, delivered) in self.deliveries.items()
                if key.endswith(f"-{lane.operator}-{lane.lane}-{first}")
            ]
            if [one.row for one in rows] not in got:
                raise Violation(
                    f"entry {entry.number}: {lane} consumed {len(rows)} rows from {first} on, and did not get them"
                )

    def _was_discarded(self, entry: Entry, lane: LaneId) -> bool:
        counts = entry.counts.get(lane.operator)
        return counts is not None and counts.overflowed > 0

    def _check_wholes(self, entry: Entry) -> None:
        """A key group that was written whole is what its changes before say."""
        replica = self.model.replica
        for whole in entry.wholes:
            since = replica.logs[whole.operator].whole(whole.group).since
            expected = self.model.group_as_of(whole.operator, whole.group, since)
            snapshot = {}
            for piece in whole.slices:
                batch = self._batches.batch(piece, decode_schema(replica.schemas[piece.schema]))
                part = batch.slice(piece.first, piece.rows)
                snapshot.update({key: record for _, key, record in changes_in(part, piece, ALL_GROUPS)})
            if snapshot != expected:
                raise Violation(
                    f"entry {entry.number}: key group {whole.group} of {whole.operator!r} was written whole as of change {since}, "
                    f"and is not what the changes before it say: {_difference(snapshot, expected)}"
                )

    def _check_states(self, entry: Entry) -> None:
        """The state of a key is what its tuples amount to, in their order."""
        touched = {
            (lane.operator, one.row["key"])
            for lane, _, rows in self.model.taken
            if lane.operator in KEYED
            for one in rows
        }
        if not touched:
            return
        known = {}
        for operator in {operator for operator, _ in touched}:
            for (name, _), group_records in self.model.records.items():
                if name == operator:
                    known.update({(operator, key_in(key)): columns_in(record) for key, record in group_records.items()})
        for operator, key in sorted(touched):
            expected = self.model.keys[operator].get(key, (0, 0))
            count, order = known.get((operator, key), (0, 0))
            if count != expected[0] or (operator == "count" and order != expected[1]):
                raise Violation(
                    f"entry {entry.number}: key {key} of {operator!r} counts {count} tuples, recounted {expected[0]}"
                    f"{'' if count != expected[0] else ', in another order'}"
                )

    def _check_live(self, entry: Entry, run: Run, hosts: SimulatedHosts) -> None:
        """A key group that was served is live in the home of its owner, and that host knows what the entries say.

        Others may be live elsewhere for a moment: their lane has moved, and learns them before it is served.
        """
        tables = run.driver.tables
        for operator in sorted({change.operator for change in entry.changes} & tables.groups.stateful):
            runs = [change.slice.runs for change in entry.changes if change.operator == operator]
            for group in sorted({group for some in runs for group, _ in unpacked(some)}):
                lane, live = self.model.replica.owners[operator][group], tables.groups.primary(operator, group)
                home = tables.homes.home(LaneId(operator, lane))
                if live is None or tables.hosts.of(live) is None:
                    continue
                if home is not None and home != live.number:
                    raise Violation(
                        f"entry {entry.number}: key group {group} of {operator!r} is live in host {live.number}, and its lane {lane} lives in {home}"
                    )
                host = next((one for one in hosts.processes if one.incarnation == live.incarnation), None)
                if host is None or host.context is None or host.context.state is None:
                    continue
                known = dict(host.context.state.store.group(operator, group))
                expected = self.model.records[operator, group]
                if known != expected:
                    raise Violation(
                        f"entry {entry.number}: {host.name} has key group {group} of {operator!r} live, and does not know what the "
                        f"entries say: {_difference(known, expected)}"
                    )


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    """What two snapshots of one state have in common: lanes that are empty may be missing."""
    lanes = sorted(
        (operator, lane, consumed, slices) for operator, lane, consumed, slices in snapshot.lanes if consumed or slices
    )
    facts = {
        "lanes": lanes,
        "totals": snapshot.totals,
        "sources": snapshot.sources,
        "given": sorted(snapshot.given),
        "sizes": snapshot.sizes,
        "owners": snapshot.owners,
        "watermarks": snapshot.watermarks,
        "logs": snapshot.logs,
    }
    return {name: msgspec.to_builtins(value) for name, value in facts.items()}


def _difference(actual: dict[bytes, Any], expected: dict[bytes, Any]) -> str:
    for key in sorted({*actual, *expected}):
        if actual.get(key) != expected.get(key):
            one, other = (columns_in(value[key]) if value.get(key) else None for value in (actual, expected))
            return f"key {key_in(key)} has {one}, expected {other}"
    return "nothing"
