"""What goes wrong: bad tuples, bad operators, bad disks. A clear error, nothing lost, and the run goes on when mended."""

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flows import each_once, files_by_delivery, finish, ids_in, ids_of, numbers, same
from pyspark.sql import SparkSession

from elastream import Settings, Topology, run, sources
from elastream.errors import BaseInUse, BaseUnusable, Damaged, OperatorFailed, SettingError, TopologyError
from elastream.workload import constant

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
def test_a_tuple_on_which_an_operator_raises_is_put_aside_with_its_error(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    flow = numbers(700)
    getattr(flow, kind)(
        "fussy", _fails_on_sevens if kind == "map" else _fails_on_batches_with_sevens, after="in", replicas=2
    )
    flow.output("out", after="fussy")
    with run(flow, str(tmp_path), spark=spark) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        assert ids_of(handle) == Counter(n for n in range(700) if n % 7)
        audit = handle.audit()
    assert {letter["row"] for letter in letters} == {f'{{"id": {n}}}' for n in range(0, 700, 7)}
    assert {letter["operator"] for letter in letters} == {"fussy"}
    assert all(letter["error"].startswith("ValueError: no sevens:") for letter in letters)
    assert (audit.entered, audit.finished, audit.dropped, audit.problems) == (700, 600, 100, ())


def test_on_error_stop_ends_the_run_and_a_mended_operator_goes_on_with_every_tuple(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = numbers(700).map("fussy", _fails_on_sevens, after="in", replicas=2).output("out", after="fussy")
    handle = run(broken, str(tmp_path), spark=spark, settings=Settings(on_error="stop"))
    with pytest.raises(OperatorFailed, match=r"operator 'fussy' replica \d: ValueError: no sevens: 0 at .* on tuple"):
        handle.await_end(60)
    mended = numbers(700).map("fussy", lambda row: row, after="in", replicas=2).output("out", after="fussy")
    with run(mended, str(tmp_path), spark=spark, settings=Settings(on_error="stop")) as again:
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
    spark: SparkSession, tmp_path: Path, operator: Any, message: str
) -> None:
    flow = numbers(50).map("bad", operator, after="in").output("out", after="bad")
    handle = run(flow, str(tmp_path), spark=spark)
    with pytest.raises(OperatorFailed, match=message):
        handle.await_end(60)
    mended = numbers(50).map("bad", lambda row: row, after="in").output("out", after="bad")
    with run(mended, str(tmp_path), spark=spark) as again:
        finish(again)
        assert ids_of(again) == each_once(50)


def test_a_batch_operator_that_returns_other_columns_stops_the_run(spark: SparkSession, tmp_path: Path) -> None:
    flow = (
        numbers(50)
        .batch("bad", lambda batch: batch.rename_columns(["x", "_due"]), after="in")
        .output("out", after="bad")
    )
    with pytest.raises(OperatorFailed, match=r"operator 'bad': declared columns \['id'\], returned \['x'\]"):
        run(flow, str(tmp_path), spark=spark).await_end(60)


def test_a_source_whose_frame_lacks_a_declared_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rate = sources.dataframe(lambda spark: spark.readStream.format("rate").load(), schema="value long, user string")
    flow = Topology("bad").source("rate", rate).output("out", after="rate")
    with pytest.raises(
        TopologyError, match=r"source 'rate': expected .* columns value, user, got one with timestamp, value"
    ):
        run(flow, str(tmp_path), spark=spark)
    # The base is free again after the refusal.
    with run(numbers(5).output("out", after="in"), str(tmp_path), spark=spark) as handle:
        finish(handle)


def test_a_base_in_use_is_refused_and_free_again_after_stop(spark: SparkSession, tmp_path: Path) -> None:
    flow = numbers(10).output("out", after="in")
    with run(flow, str(tmp_path), spark=spark), pytest.raises(BaseInUse, match=rf"in use by .*{os.getpid()}"):
        run(flow, str(tmp_path), spark=spark)
    with run(flow, str(tmp_path), spark=spark) as again:
        finish(again)
        assert ids_of(again) == each_once(10)


def test_a_base_that_cannot_be_written_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BaseUnusable, match="cannot be written"):
        run(numbers(10).output("out", after="in"), str(tmp_path / "file" / "base"), spark=spark)


def _stopped_with_a_backlog(spark: SparkSession, base: Path) -> None:
    """A run that is stopped while tuples wait in front of its slow operator."""
    flow = numbers(3000, seconds=0.2).map("slow", _takes_5_ms, after="in", replicas=2).output("out", after="slow")
    with run(flow, str(base), spark=spark) as handle:
        until = time.monotonic() + 60
        while handle.observe().operators["slow"].queued < 500:
            assert time.monotonic() < until
            time.sleep(0.02)
    assert handle.book.queued("slow") > 0


def _takes_5_ms(row: Row) -> Row:
    time.sleep(0.005)
    return row


def _quick() -> Topology:
    return numbers(3000, seconds=0.2).map("slow", lambda row: row, after="in", replicas=2).output("out", after="slow")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x01
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["ledger/entry-*", "segments/*"])
def test_a_damaged_file_is_named_and_the_run_goes_on_when_it_is_restored(
    spark: SparkSession, tmp_path: Path, what: str
) -> None:
    _stopped_with_a_backlog(spark, tmp_path)
    files = sorted(tmp_path.glob(what))
    copies = {path: path.read_bytes() for path in files}
    for path in files[-1:] if "entry" in what else files:
        _flip(path)
    with pytest.raises(Damaged, match=r"(entry-|segments/).*restore"):
        run(_quick(), str(tmp_path), spark=spark).await_end(60)
    for path, data in copies.items():
        path.write_bytes(data)
    with run(_quick(), str(tmp_path), spark=spark) as again:
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
def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(
    spark: SparkSession, small_disk: Path, tmp_path: Path
) -> None:
    def flow() -> Topology:
        made = numbers(60_000, seconds=3).batch("a", same, after="in", replicas=2)
        return made.sink("end", files_by_delivery(tmp_path), after="a", replicas=2)

    (small_disk / "ballast").write_bytes(b"x" * 400_000)
    handle = run(flow(), str(small_disk / "base"), spark=spark)
    with pytest.raises(BaseUnusable, match=r"No space left on device.*start again with the same base"):
        handle.await_end(60)
    (small_disk / "ballast").unlink()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    with run(flow(), str(small_disk / "base"), spark=spark) as again:
        finish(again)
        assert again.audit().problems == ()
    assert ids_in(tmp_path) == each_once(60_000)


def test_full_lanes_that_wait_hold_no_more_than_q_size_and_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    most = 0
    flow = numbers(3000).map("slow", _takes_5_ms, after="in", replicas=(1, 4), start=4).output("out", after="slow")

    def look(tick: Any) -> None:
        nonlocal most
        most = max(most, *(len(q) for lane, q in handle.book.lanes.items() if lane.operator == "slow"), 0)

    with run(flow, str(tmp_path), spark=spark, settings=Settings(q_size=150)) as handle:
        handle.subscribe(look)
        finish(handle)
        assert ids_of(handle) == each_once(3000)
        assert handle.audit().dropped == 0
    assert 100 < most <= 150


def test_full_lanes_that_drop_count_what_they_drop(spark: SparkSession, tmp_path: Path) -> None:
    flow = numbers(3000).map("slow", _takes_5_ms, after="in", replicas=2).output("out", after="slow")
    with run(flow, str(tmp_path), spark=spark, settings=Settings(q_size=100, on_full="drop")) as handle:
        finish(handle)
        kept = ids_of(handle)
        audit = handle.audit()
        overflowed = handle.book.totals["slow"]["overflowed"]
    assert audit.problems == ()
    assert audit.entered == 3000 == audit.finished + audit.dropped
    assert audit.dropped == overflowed > 0
    assert sum(kept.values()) == audit.finished == len(kept)


def test_tuples_older_than_t_out_are_dropped_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    flow = numbers(4000, seconds=0.2).map("slow", _takes_5_ms, after="in", replicas=2).output("out", after="slow")
    with run(flow, str(tmp_path), spark=spark, settings=Settings(t_out_s=3.0)) as handle:
        finish(handle)
        audit = handle.audit()
        late = handle.book.totals["slow"]["late"]
        kept = ids_of(handle)
    assert audit.problems == ()
    assert late == audit.dropped > 0
    assert len(kept) == audit.finished == 4000 - late > 0


def test_a_sink_that_raises_puts_its_delivery_aside(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(batch: pa.RecordBatch, delivery: Any) -> None:
        raise ConnectionError("the database is away")

    with run(numbers(100).sink("end", refuse, after="in"), str(tmp_path), spark=spark) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        audit = handle.audit()
    assert len(letters) == 100 == audit.dropped
    assert "the database is away" in letters[0]["error"]


def test_a_changed_topology_keeps_the_lanes_of_operators_that_kept_their_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    _stopped_with_a_backlog(spark, tmp_path)
    changed = numbers(3000, seconds=0.2)
    changed.map("slow", lambda row: row, after="in", replicas=(1, 6), start=3)
    changed.batch("new", same, after="slow", replicas=2).output("out", after="new")
    with run(changed, str(tmp_path), spark=spark) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(3000)
        assert handle.audit().problems == ()


def test_an_operator_that_tuples_wait_for_cannot_vanish_unless_they_are_discarded(
    spark: SparkSession, tmp_path: Path
) -> None:
    _stopped_with_a_backlog(spark, tmp_path)
    without = numbers(3000, seconds=0.2).output("out", after="in")
    with pytest.raises(SettingError, match=r"\d+ tuples wait for operator 'slow'.*discard=\('slow',\)"):
        run(without, str(tmp_path), spark=spark)
    with run(without, str(tmp_path), spark=spark, discard=("slow",)) as handle:
        finish(handle)
        audit = handle.audit()
        kept = ids_of(handle)
    assert audit.problems == ()
    assert audit.dropped > 0
    assert sum(kept.values()) + audit.dropped == 3000


def test_a_restart_goes_on_where_the_stream_was(spark: SparkSession, tmp_path: Path) -> None:
    flow = Topology("again").source("in", sources.replay(constant(1000, 6)))
    flow.batch("a", same, after="in", replicas=3).sink("end", files_by_delivery(tmp_path), after="a", replicas=2)
    base = str(tmp_path / "base")
    ticks = []
    for _ in range(3):
        with run(flow, base, spark=spark) as handle:
            handle.await_end(2)
        ticks.append(handle.book.tick)
    with run(flow, base, spark=spark) as handle:
        finish(handle)
    assert ticks == sorted(set(ticks))
    assert ids_in(tmp_path) == each_once(6000)
    assert handle.audit().entered == 6000


def test_a_worker_process_that_is_killed_costs_no_tuple(spark: SparkSession, tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def die_once(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not marker.exists() and pa.compute.max(batch.column("id")).as_py() > 500:
            marker.write_text("now")
            os.kill(os.getpid(), 9)
        return batch

    flow = Topology("killed").source("in", sources.replay(constant(600, 3)))
    flow.batch("fragile", die_once, after="in", replicas=2).output("out", after="fragile")
    with run(flow, str(tmp_path / "base"), spark=spark) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(1800)
        assert handle.audit().problems == ()
    assert marker.exists()


def test_a_base_whose_checkpoint_was_lost_is_not_read_from_the_start_again(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1}\n{"id": 2}\n')
    files = sources.dataframe(
        lambda spark: spark.readStream.schema("id long").json(str(tmp_path / "in")), schema="id long"
    )
    flow = Topology("lost").source("files", files).output("out", after="files")
    with run(flow, str(tmp_path / "base"), spark=spark) as handle:
        until = time.monotonic() + 60
        while sum(ids_of(handle).values()) < 2:
            assert time.monotonic() < until
            time.sleep(0.1)
    shutil.move(tmp_path / "base" / "checkpoint", tmp_path / "kept")
    with pytest.raises(
        SettingError, match=r"source 'files': base .* another checkpoint of Spark's.*give that one back"
    ):
        run(flow, str(tmp_path / "base"), spark=spark).await_end(60)
    shutil.rmtree(tmp_path / "base" / "checkpoint")
    shutil.move(tmp_path / "kept", tmp_path / "base" / "checkpoint")
    (tmp_path / "in" / "2.json").write_text('{"id": 3}\n')
    with run(flow, str(tmp_path / "base"), spark=spark) as again:
        until = time.monotonic() + 60
        while sum(ids_of(again).values()) < 3:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert ids_of(again) == Counter([1, 2, 3])
