"""What goes wrong: bad tuples, bad operators, bad disks. A clear error, nothing lost, and the run goes on when mended."""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flows import each_once, files_by_delivery, finish, ids_in, ids_of, numbers, same, wait_for

from elastream import ErrorSettings, QueueSettings, Settings, Topology, sources
from elastream.errors import BaseInUse, BaseUnusable, Damaged, OperatorFailed, SettingError
from elastream.lanes import Store, audit
from elastream.testing import LocalEngine
from elastream.topology import parse_schema
from elastream.workload import constant
from elastream.workload.replay import Replay

Row = dict[str, Any]


def _fails_on_sevens(row: Row) -> Row:
    if row["id"] % 7 == 0:
        raise ValueError(f"no sevens: {row['id']}")
    return row


def _fails_on_batches_with_sevens(batch: pa.RecordBatch) -> pa.RecordBatch:
    for value in batch.column("id").to_pylist():
        _fails_on_sevens({"id": value})
    return batch


@pytest.mark.parametrize("kind", ["map", "batch"])
def test_a_tuple_on_which_an_operator_raises_is_put_aside_with_its_error(tmp_path: Path, kind: str) -> None:
    flow = numbers(700)
    getattr(flow, kind)(
        "fussy", _fails_on_sevens if kind == "map" else _fails_on_batches_with_sevens, after="in", replicas=2
    )
    flow.output("out", after="fussy")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        assert ids_of(handle) == Counter(n for n in range(700) if n % 7)
        audit = handle.audit()
    assert {letter["row"] for letter in letters} == {f'{{"id": {n}}}' for n in range(0, 700, 7)}
    assert {letter["operator"] for letter in letters} == {"fussy"}
    assert all(letter["error"].startswith("ValueError: no sevens:") for letter in letters)
    assert (audit.entered, audit.finished, audit.dropped, audit.problems) == (700, 600, 100, ())


def test_on_error_stop_ends_the_run_and_a_mended_operator_goes_on_with_every_tuple(tmp_path: Path) -> None:
    broken = numbers(700).map("fussy", _fails_on_sevens, after="in", replicas=2).output("out")
    handle = LocalEngine().start(broken, str(tmp_path), settings=Settings(errors=ErrorSettings(on_error="stop")))
    with pytest.raises(OperatorFailed, match=r"operator 'fussy' replica \d: ValueError: no sevens: \d+ at .* on tuple"):
        handle.await_end(60)
    mended = numbers(700).map("fussy", lambda row: row, after="in", replicas=2).output("out")
    with LocalEngine().start(mended, str(tmp_path), settings=Settings(errors=ErrorSettings(on_error="stop"))) as again:
        finish(again)
        assert ids_of(again) == each_once(700)


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (lambda row: {"number": row["id"]}, r"operator 'bad': declared columns \['id'\], returned \['number'\]"),
        (lambda row: {"id": "three"}, r"operator 'bad': declared id int64, returned other types"),
        (lambda row: None, r"operator 'bad': declared columns \['id'\], returned NoneType None"),
    ],
    ids=["other columns", "other types", "nothing"],
)
def test_an_operator_that_returns_what_it_did_not_declare_stops_the_run(
    tmp_path: Path, operator: Any, message: str
) -> None:
    flow = numbers(50).map("bad", operator, after="in").output("out")
    handle = LocalEngine().start(flow, str(tmp_path))
    with pytest.raises(OperatorFailed, match=message):
        handle.await_end(60)
    mended = numbers(50).map("bad", lambda row: row, after="in").output("out")
    with LocalEngine().start(mended, str(tmp_path)) as again:
        finish(again)
        assert ids_of(again) == each_once(50)


def test_an_operator_that_never_keeps_to_its_declaration_stops_the_run_also_when_tuples_come_one_by_one(
    tmp_path: Path,
) -> None:
    flow = Topology("slow")
    flow.source("in", sources.replay(constant(4, 60)))
    flow.map("bad", lambda row: None, after="in").output("out")
    with pytest.raises(OperatorFailed, match=r"operator 'bad': declared columns \['id'\]"):
        LocalEngine(hosts=1).start(flow, str(tmp_path)).await_end(60)


def test_one_row_of_many_that_is_not_as_declared_goes_to_the_dead_letters(tmp_path: Path) -> None:
    flow = numbers(3000).map("a", lambda row: None if row["id"] == 1500 else row, after="in").output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert len(ids_of(handle)) == 2999
        (letter,) = handle.dead_letters().to_pylist()
    assert letter["row"] == '{"id": 1500}' and "returned NoneType None" in letter["error"]


def test_a_batch_operator_that_returns_other_columns_stops_the_run(tmp_path: Path) -> None:
    flow = numbers(50).batch("bad", lambda batch: batch.rename_columns(["x", "_due"]), after="in").output("out")
    with pytest.raises(OperatorFailed, match=r"operator 'bad': declared columns \['id'\], returned \['x'\]"):
        LocalEngine().start(flow, str(tmp_path)).await_end(60)


def test_a_base_in_use_is_refused_and_free_again_after_stop(tmp_path: Path) -> None:
    flow = numbers(10).output("out", after="in")
    with LocalEngine().start(flow, str(tmp_path)), pytest.raises(BaseInUse, match=rf"in use by .*{os.getpid()}"):
        LocalEngine().start(flow, str(tmp_path))
    with LocalEngine().start(flow, str(tmp_path)) as again:
        finish(again)
        assert ids_of(again) == each_once(10)


def test_a_base_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BaseUnusable, match="cannot be written"):
        LocalEngine().start(numbers(10).output("out", after="in"), str(tmp_path / "file" / "base"))


def _stopped_with_a_backlog(base: Path) -> None:
    """A run that is stopped while tuples wait in front of its slow operator."""
    flow = numbers(3000, seconds=0.2).map("slow", _takes_5_ms, after="in", replicas=2).output("out")
    with LocalEngine().start(flow, str(base)) as handle:
        until = time.monotonic() + 60
        while handle.observe().operators["slow"].queued < 500:
            assert time.monotonic() < until
            time.sleep(0.02)
    assert handle.status.queued.get("slow", 0) > 0


def _takes_5_ms(row: Row) -> Row:
    time.sleep(0.005)
    return row


def _quick() -> Topology:
    return numbers(3000, seconds=0.2).map("slow", lambda row: row, after="in", replicas=2).output("out").topology


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x01
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["ledger/*.log", "segments/*"])
def test_a_damaged_file_is_named_and_the_run_goes_on_when_it_is_restored(tmp_path: Path, what: str) -> None:
    _stopped_with_a_backlog(tmp_path)
    files = sorted(tmp_path.glob(what))
    copies = {path: path.read_bytes() for path in files}
    for path in files[-1:] if "ledger" in what else files:
        _flip(path)
    with pytest.raises(Damaged, match=r"(\.log|segments/).*restore"):
        LocalEngine().start(_quick(), str(tmp_path)).await_end(60)
    for path, data in copies.items():
        path.write_bytes(data)
    with LocalEngine().start(_quick(), str(tmp_path)) as again:
        finish(again)
        assert ids_of(again) == each_once(3000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 600 KB; it needs the right to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(small_disk: Path, tmp_path: Path) -> None:
    def flow() -> Topology:
        made = numbers(60_000, seconds=3).batch("a", same, after="in", replicas=2).topology
        made.sink("end", files_by_delivery(tmp_path), after="a", replicas=2)
        return made

    (small_disk / "ballast").write_bytes(b"x" * 400_000)
    handle = LocalEngine().start(flow(), str(small_disk / "base"))
    with pytest.raises(BaseUnusable, match=r"No space left on device.*start again with the same base"):
        handle.await_end(60)
    (small_disk / "ballast").unlink()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    with LocalEngine().start(flow(), str(small_disk / "base")) as again:
        finish(again)
        assert again.audit().problems == ()
    assert ids_in(tmp_path) == each_once(60_000)


def test_full_lanes_that_wait_hold_no_more_than_q_size_and_lose_nothing(tmp_path: Path) -> None:
    most = 0
    flow = numbers(3000).map("slow", _takes_5_ms, after="in", replicas=(1, 4), start=4).output("out")

    def look(tick: Any) -> None:
        nonlocal most
        most = max(most, *(known.queued for lane, known in handle.status.lanes.items() if lane.operator == "slow"), 0)

    with LocalEngine().start(flow, str(tmp_path), settings=Settings(queues=QueueSettings(q_size=150))) as handle:
        handle.subscribe(look)
        finish(handle)
        assert ids_of(handle) == each_once(3000)
        assert handle.audit().dropped == 0
    assert 100 < most <= 150


def test_full_lanes_that_drop_count_what_they_drop(tmp_path: Path) -> None:
    flow = numbers(3000).map("slow", _takes_5_ms, after="in", replicas=2).output("out")
    with LocalEngine().start(
        flow, str(tmp_path), settings=Settings(queues=QueueSettings(q_size=100, on_full="drop"))
    ) as handle:
        finish(handle)
        kept = ids_of(handle)
        audit = handle.audit()
        overflowed = handle.status.totals["slow"].overflowed
    assert audit.problems == ()
    assert audit.entered == 3000 == audit.finished + audit.dropped
    assert audit.dropped == overflowed > 0
    assert sum(kept.values()) == audit.finished == len(kept)


def test_tuples_older_than_t_out_are_dropped_and_counted(tmp_path: Path) -> None:
    flow = numbers(4000, seconds=0.2).map("slow", _takes_5_ms, after="in", replicas=2).output("out")
    with LocalEngine().start(flow, str(tmp_path), settings=Settings(queues=QueueSettings(t_out_s=3.0))) as handle:
        finish(handle)
        audit = handle.audit()
        late = handle.status.totals["slow"].late
        kept = ids_of(handle)
    assert audit.problems == ()
    assert late == audit.dropped > 0
    assert len(kept) == audit.finished == 4000 - late > 0


def test_a_sink_that_raises_puts_its_delivery_aside(tmp_path: Path) -> None:
    def refuse(batch: pa.RecordBatch, delivery: Any) -> None:
        raise ConnectionError("the database is away")

    with LocalEngine().start(numbers(99).sink("end", refuse, after="in"), str(tmp_path)) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        audit = handle.audit()
    assert len(letters) == 99 == audit.dropped
    assert "the database is away" in letters[0]["error"]


def test_a_changed_topology_keeps_the_lanes_of_operators_that_kept_their_name(tmp_path: Path) -> None:
    _stopped_with_a_backlog(tmp_path)
    changed = numbers(3000, seconds=0.2)
    changed.map("slow", lambda row: row, after="in", replicas=(1, 6), start=3)
    changed.batch("new", same, after="slow", replicas=2).output("out")
    with LocalEngine().start(changed, str(tmp_path)) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(3000)
        assert handle.audit().problems == ()


def test_an_operator_that_tuples_wait_for_cannot_vanish_unless_they_are_discarded(tmp_path: Path) -> None:
    _stopped_with_a_backlog(tmp_path)
    without = numbers(3000, seconds=0.2).output("out", after="in")
    with pytest.raises(SettingError, match=r"\d+ tuples wait for operator 'slow'.*discard=\('slow',\)"):
        LocalEngine().start(without, str(tmp_path))
    with LocalEngine().start(without, str(tmp_path), discard=("slow",)) as handle:
        finish(handle)
        audit = handle.audit()
        kept = ids_of(handle)
    assert audit.problems == ()
    assert audit.dropped > 0
    assert sum(kept.values()) + audit.dropped == 3000


def test_a_restart_goes_on_where_the_stream_was(tmp_path: Path) -> None:
    flow = Topology("again")
    flow.source("in", sources.replay(constant(1000, 6)))
    flow.batch("a", same, after="in", replicas=3).sink("end", files_by_delivery(tmp_path), replicas=2)
    base = str(tmp_path / "base")
    ticks = []
    for _ in range(3):
        with LocalEngine().start(flow, base) as handle:
            handle.await_end(2)
        ticks.append(handle.status.entry)
    with LocalEngine().start(flow, base) as handle:
        finish(handle)
    assert ticks == sorted(set(ticks))
    assert ids_in(tmp_path) == each_once(6000)
    assert handle.audit().entered == 6000


def _was(base: Path) -> None:
    """A base in which tuples wait for an operator and in an output."""
    flow = numbers(300).map("slow", _takes_5_ms, after="in").output("out")
    handle = LocalEngine().start(flow, str(base))
    wait_for(lambda: handle.totals("slow").finished > 3)
    handle.stop()


def _changed(what: str) -> Topology:
    match what:
        case "columns":
            flow = Topology("test")
            flow.source("in", Replay(constant(600, 0.5), parse_schema("id int"), lambda n: {"id": n}))
            flow.map("slow", same_row, after="in").output("out")
            return flow
        case "an output becomes a sink":
            return numbers(300).map("slow", same_row, after="in").sink("out", lambda batch, delivery: None).topology
        case "an operator becomes an output":
            return numbers(300).output("slow", after="in").topology.output("out", after="in").topology
        case "an output vanishes":
            return numbers(300).map("slow", same_row, after="in").output("new").topology
        case _:
            raise ValueError(what)


def same_row(row: Row) -> Row:
    return row


@pytest.mark.parametrize(
    ("what", "message", "discard"),
    [
        ("columns", r"wait for output 'out' with columns id int64, and now it takes id int32", ("slow", "out")),
        ("an output becomes a sink", r"wait for output 'out', which is an operator now", ("out",)),
        ("an operator becomes an output", r"wait for operator 'slow', which is an output now", ("slow",)),
        ("an output vanishes", r"wait for output 'out', which this topology does not have", ("out",)),
    ],
)
def test_what_waits_must_be_for_the_same_kind_with_the_same_columns_or_be_discarded(
    tmp_path: Path, what: str, message: str, discard: tuple[str, ...]
) -> None:
    _was(tmp_path)
    before = audit(Store(str(tmp_path)))
    with pytest.raises(SettingError, match=message):
        LocalEngine().start(_changed(what), str(tmp_path))
    assert audit(Store(str(tmp_path))) == before
    with LocalEngine().start(_changed(what), str(tmp_path), discard=discard) as handle:
        finish(handle)
        found = handle.audit()
    assert (found.queued, found.problems) == (0, ()) and found.entered == found.finished + found.dropped
    # The next start finds nothing to complain of.
    with LocalEngine().start(_changed(what), str(tmp_path)) as handle:
        assert handle.audit().problems == ()
