"""A run from a second terminal: its status document, requests left in the base, and the log file."""

import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from flows import each_once, finish, ids_of, numbers, same, wait_for

from elastream import Topology, sources
from elastream.cli.main import main
from elastream.engine.driver.ports import Tick
from elastream.engine.handle import RunHandle
from elastream.engine.operations import attendant, log_file, requests
from elastream.engine.operations.log_file import RunLog
from elastream.engine.operations.requests import Answer, Discard, Drain, Requests, Scale, Stop, ask
from elastream.engine.operations.snapshot import RunSnapshots
from elastream.engine.operations.status_document import FILE, StatusDocument, liveness, read_status
from elastream.engine.recording import Recorder, events_of
from elastream.errors import Damaged, OperatorFailed, RunFailed
from elastream.lanes import Store
from elastream.report import write_report
from elastream.testing import LocalEngine
from elastream.workload import constant


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendant, "EVERY_S", 0.05)


def slow_flow(per_s: float = 200.0, seconds: float = 600.0) -> Topology:
    """More comes than one replica serves."""
    source = Topology("slow").source("in", sources.replay(constant(per_s, seconds)))
    return source.map("work", _slow, schema="id long", replicas=(1, 4), waits=True).output("out").topology


def _slow(row: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.02)
    return row


@contextmanager
def running(base: Path) -> Iterator[tuple[RunHandle, Store, StatusDocument]]:
    with LocalEngine(hosts=1).start(slow_flow(), str(base), policy=None) as handle:
        assert handle.await_begin(60)
        yield handle, Store(str(base)), status_of(base, "running")


def status_of(base: Path, phase: str) -> StatusDocument:
    """The status as soon as it has this phase."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        document = read_status(Store(str(base)))
        if document is not None and document.phase == phase:
            return document
        time.sleep(0.02)
    raise AssertionError(f"no status with phase {phase}: {document}")


def request_file(store: Store, **changes: Any) -> str:
    """A request in the base, as any process may write one; gives its number."""
    number = f"{len(store.names(requests.FOLDER)):032x}"
    fields = {"version": 1, "run": "this", "made_s": time.time(), "by": "a test", "action": {"type": "stop"}} | changes
    store.write(f"{requests.FOLDER}/{number}.request.json", json.dumps(fields).encode())
    return number


def test_the_status_says_what_a_viewer_needs_and_only_its_user_can_read_it(tmp_path: Path) -> None:
    with running(tmp_path) as (handle, _, _):
        wait_for(lambda: handle.status.queued["work"] > 200)
        seen = status_of(tmp_path, "running")
        wait_for(lambda: (read_status(handle.store) or seen).queued > 200)
        seen = status_of(tmp_path, "running")
        assert seen.name == "slow" and seen.policy == "by hand" and seen.pid == os.getpid()
        rows = {row.name: row for row in seen.operators}
        assert [row.role for row in seen.operators] == ["source", "operator", "output"]
        assert (rows["work"].replicas, rows["work"].min, rows["work"].max) == (1, 1, 4)
        assert seen.queued == rows["work"].queued > 0 and rows["work"].busy == 1.0
        assert seen.verdict.startswith("work is the bottleneck: 1 of 4 replicas")
        assert {row.level for row in seen.levels} == {"seat", "host", "executor"}
        assert liveness(seen, time.time()).state == "running"
        assert main(["status", str(tmp_path)]) == 0
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
        assert len((tmp_path / FILE).read_bytes()) < 10_000
    assert status_of(tmp_path, "over").error == ""
    assert main(["status", str(tmp_path)]) == 1


def test_a_run_is_scaled_from_a_second_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as (handle, _, _):
        assert main(["scale", str(tmp_path), "work=3", "seats=7"]) == 0
        assert capsys.readouterr().out == "work: 1 -> 3 replicas; seats: 256 -> 7\n"
        wait_for(lambda: handle.status.replicas["work"] == 3)
        wait_for(lambda: {level.level.value: level.planned for level in handle.fleet}["seat"] == 7)
        wait_for(lambda: any(line.kind == "rescale" for line in status_of(tmp_path, "running").lines))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scale", "work=2", "no=1"], "scale: no operator 'no' with replicas of its own; there are work, out"),
        (["scale", "work=2", "hosts=0"], "level 'host': expected a whole number from 1 on, got 0"),
        (["scale", "work=5"], "operator 'work': replicas must be 1..4, got 5"),
        (["scale", "work"], "scale 'work': expected OPERATOR=NUMBER, for example enrich=4 or hosts=2"),
        (["scale", "work=-1"], "scale 'work=-1': expected OPERATOR=NUMBER, for example enrich=4 or hosts=2"),
        (["scale", "work=2", "work=3"], "scale 'work=3': work is named twice; name it once"),
        (["discard", "no"], "discard: no operator 'no' with lanes of its own; there are work, out"),
    ],
)
def test_a_request_that_is_refused_is_answered_in_one_line_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    with running(tmp_path) as (handle, _, _):
        assert main([words[0], str(tmp_path), *words[1:]]) == 2
        assert capsys.readouterr().err == f"elastream: {message}\n"
        assert handle.status.replicas["work"] == 1 and handle.active
    assert Store(str(tmp_path)).names(requests.FOLDER) == []


def test_a_run_is_stopped_from_a_second_terminal_and_what_waits_is_kept(tmp_path: Path) -> None:
    with running(tmp_path) as (handle, _, _):
        wait_for(lambda: handle.status.queued["work"] > 50)
        assert main(["stop", str(tmp_path)]) == 0
        assert handle.await_end(10)
        audit = handle.audit()
    assert audit.queued > 0 and audit.problems == () and audit.dropped == 0
    assert status_of(tmp_path, "over").queued == audit.queued
    assert main(["stop", str(tmp_path)]) == 1


def test_discarded_tuples_are_dropped_and_counted(tmp_path: Path) -> None:
    with running(tmp_path) as (handle, store, seen):
        wait_for(lambda: handle.status.queued["work"] > 50)
        assert "tuples that waited for work are dropped" in ask(store, seen.run, Discard(("work",)), "a test")
        wait_for(lambda: handle.totals("work").overflowed > 50)


def test_a_drained_run_serves_all_it_has_read_and_the_next_one_goes_on_reading(tmp_path: Path) -> None:
    flow = numbers(2000, seconds=20.0)
    flow.batch("a", same, after="in", replicas=(1, 3)).batch("b", same, replicas=2).output("out")
    handles: list[RunHandle] = []

    def drain_soon(tick: Tick) -> None:
        if handles[0].status.totals["in"].processed > 500 and not handles[0].is_draining:
            handles[0].drain()

    engine = LocalEngine(virtual=True)
    handle = engine.start(flow, str(tmp_path), policy=None)
    handles.append(handle)
    handle.subscribe(drain_soon)
    finish(handle)
    audit = handle.audit()
    assert audit.queued == 0 and audit.problems == ()
    read = audit.entered
    assert 500 < read < 2000 and ids_of(handle) == each_once(read)
    with engine.start(flow, str(tmp_path), policy=None) as again:
        finish(again)
        assert ids_of(again) == each_once(2000)


def test_a_drain_keeps_windows_open_for_what_the_next_run_reads(tmp_path: Path) -> None:
    def counting() -> Topology:
        source = Topology("w").source("in", sources.replay(constant(100, 10), "key long, at timestamp", _with_times))
        counts = source.key_by("key").window("count", time="at", every_s=1e6, aggregate={"n": "count()"})
        return counts.output("out").topology

    handles: list[RunHandle] = []

    def drain_soon(tick: Tick) -> None:
        if handles[0].status.totals["in"].processed > 300 and not handles[0].is_draining:
            handles[0].drain()

    engine = LocalEngine(virtual=True)
    snapshots = RunSnapshots()
    handle = engine.start(counting(), str(tmp_path), policy=None, listeners=[snapshots])
    handles.append(handle)
    handle.subscribe(drain_soon)
    finish(handle)
    assert handle.output("out").num_rows == 0
    watermarks = {row.name: row.watermark_s for row in snapshots.take().operators}
    assert watermarks["in"] is None and 1_700_000_002 < (watermarks["count"] or 0) < 1_700_000_010
    with engine.start(counting(), str(tmp_path), policy=None) as again:
        finish(again)
        assert again.output("out").column("n").to_pylist() == [1000]


def _with_times(ids: Any) -> dict[str, Any]:
    return {"key": ids * 0, "at": list(pd.to_datetime(1_700_000_000 + ids * 0.01, unit="s", utc=True))}


def test_a_drain_can_be_asked_for_from_a_second_terminal(tmp_path: Path) -> None:
    with running(tmp_path) as (handle, _, _):
        handle.scale("work", 4)
        assert main(["drain", str(tmp_path), "--timeout", "60"]) == 0
        assert handle.await_end(10)
        audit = handle.audit()
    assert audit.queued == 0 and audit.entered == audit.finished > 0


def test_requests_that_are_damaged_old_unknown_or_of_another_run_are_refused_in_one_line(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    inbox = Requests(store, "this")
    good = request_file(store)
    cases = {
        request_file(store, action={"type": "explode"}): "Invalid value 'explode'",
        request_file(store, action={"type": "scale", "replicas": {"a": "many"}}): "Expected `int`, got `str`",
        request_file(store, action={"type": "discard"}): "missing required field `operators`",
        request_file(store, run="before"): "it is for another run with this base",
        request_file(store, version=9): "a request of version 9, this Elastream takes 1",
        request_file(store, made_s=time.time() - 100): "made 100 s ago by its clock",
        request_file(store, made_s=float("nan")): "not a request that this Elastream knows",
        request_file(store, by="x" * 100_000): "a request may have 65,536 bytes",
    }
    store.write(f"{requests.FOLDER}/{'f' * 32}.request.json", b"{half a requ")
    store.write(f"{requests.FOLDER}/notes.txt", b"no request at all")
    received = {one.number: one for one in inbox.look()}
    taken = received[good].request
    assert taken is not None and taken.action == Stop()
    for number, message in {**cases, "f" * 32: "not a request that this Elastream knows"}.items():
        assert received[number].request is None
        assert received[number].refusal.startswith("refused: ") and message in received[number].refusal
        assert "\n" not in received[number].refusal
    assert len(received) == len(cases) + 2
    for number in received:
        inbox.answer(number, Answer(error="refused"))
    assert list(inbox.look()) == []
    assert "notes.txt" in store.names(requests.FOLDER)


def test_too_many_requests_at_once_are_refused(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    for _ in range(requests.MAX_REQUESTS + 5):
        request_file(store)
    received = list(Requests(store, "this").look())
    assert sum(one.request is None for one in received) == 5
    assert received[-1].refusal == "refused: more than 50 requests at once; ask again later"


def test_requests_that_earlier_runs_left_are_not_carried_out(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    request_file(store)
    inbox = Requests(store, "this")
    inbox.open()
    assert list(inbox.look()) == [] and store.names(requests.FOLDER) == []


def test_a_driver_that_does_not_answer_is_said_and_the_request_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path))
    with pytest.raises(RunFailed, match=r"the driver did not answer within 0\.2 s, and the request was taken back"):
        ask(store, "this", Drain(), "a test", timeout_s=0.2)
    assert store.names(requests.FOLDER) == []
    monkeypatch.setattr(requests, "LAST_ANSWER_S", 0.2)
    with pytest.raises(RunFailed, match="the driver ended before it answered"):
        ask(store, "this", Scale({"a": 1}), "a test", is_running=lambda: False)


@pytest.mark.parametrize(
    ("changes", "state", "code"),
    [
        ({}, "running", 0),
        ({"phase": "over"}, "over", 1),
        ({"phase": "over", "error": "tick 9 failed"}, "failed", 3),
        ({"process": ["another boot", "x", "1", "2"], "written_s": 1000.0}, "silent", 3),
        ({"written_s": 1000.0}, "silent", 3),
    ],
)
def test_a_status_says_whether_its_driver_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], state: str, code: int
) -> None:
    base = tmp_path / "base"
    with running(base) as (_, store, seen):
        pass
    document = msgspec.structs.replace(seen, written_s=time.time())
    store.write(FILE, msgspec.json.encode(msgspec.structs.replace(document, **changes)))
    assert main(["status", str(base), "--json"]) == code
    assert json.loads(capsys.readouterr().out)["state"] == state


def test_a_driver_that_was_killed_is_gone_at_once_on_its_own_machine(tmp_path: Path) -> None:
    with running(tmp_path) as (_, _, seen):
        pass
    boot, namespace, pid, _ = seen.process
    dead = msgspec.structs.replace(seen, process=[boot, namespace, pid, "1"], written_s=time.time())
    assert liveness(dead, time.time()).state == "gone"


def test_a_damaged_status_and_a_folder_that_is_no_base_are_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(tmp_path))
    store.write(FILE, b"{}")
    with pytest.raises(Damaged, match="no status of a run"):
        read_status(store)
    store.write(FILE, b'{"version": 2}')
    with pytest.raises(Damaged, match="version 2, this Elastream reads 1"):
        read_status(store)
    for command in ("status", "watch", "stop", "drain"):
        assert main([command, str(tmp_path)]) == 2
        assert f"{command}: {tmp_path} is no base of Elastream" in capsys.readouterr().err
        assert main([command, str(tmp_path / "no")]) == 2
        assert f"{command}: {tmp_path / 'no'} is no directory" in capsys.readouterr().err


def test_a_run_that_fails_leaves_its_error_in_the_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = numbers(1000).map("bad", _bad, after="in", schema="id long").output("out")
    with pytest.raises(OperatorFailed), LocalEngine().start(flow, str(tmp_path), policy=None) as handle:
        finish(handle)
    assert "ValueError: no number" in status_of(tmp_path, "over").error
    assert main(["status", str(tmp_path)]) == 3
    assert "the last run failed" in capsys.readouterr().out


def _bad(row: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("no number")


def test_the_log_file_tells_the_run_with_timestamps_and_only_its_user_can_read_it(tmp_path: Path) -> None:
    with running(tmp_path) as (handle, store, seen):
        ask(store, seen.run, Scale({"work": 2}), "a test")
        wait_for(lambda: handle.status.replicas["work"] == 2)
        path = Path(handle.log_file)
    text = path.read_text()
    assert path == tmp_path / "logs" / "elastream.log" and stat.S_IMODE(path.stat().st_mode) == 0o600
    for words in ("slow starts, policy by hand", "running, entry", "scale work=2 (a test)", "work: 2 replicas", "over"):
        assert words in text
    assert all(
        re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) ", line) for line in text.splitlines()
    )


def test_log_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_BYTES", 1000)
    log = RunLog(Store(str(tmp_path)))
    for number in range(500):
        log.note(f"line {number}")
    log.close()
    files = list((tmp_path / "logs").iterdir())
    assert len(files) == 1 + log_file.OLDER_FILES and all(file.stat().st_size <= 1000 for file in files)
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_a_run_in_virtual_time_writes_no_status(tmp_path: Path) -> None:
    flow = numbers(100).output("out", after="in")
    with LocalEngine(virtual=True).start(flow, str(tmp_path), policy=None) as handle:
        finish(handle)
        assert handle.log_file == ""
    assert read_status(Store(str(tmp_path))) is None


def test_a_base_that_begins_anew_has_no_old_status(tmp_path: Path) -> None:
    with running(tmp_path):
        pass
    flow = numbers(100).output("out", after="in")
    with LocalEngine(virtual=True).start(flow, str(tmp_path), policy=None, fresh=True) as handle:
        finish(handle)
    assert read_status(Store(str(tmp_path))) is None and not (tmp_path / "logs").exists()


def test_the_report_names_the_bottleneck_and_counts_rows_kept_for_readers_as_no_queue(tmp_path: Path) -> None:
    flow = numbers(2000, seconds=20.0).batch("a", same, after="in", replicas=(1, 3)).output("out").topology
    recorder = Recorder(flow.build())
    with LocalEngine(virtual=True).start(
        flow, str(tmp_path / "base"), policy="elastic", listeners=[recorder]
    ) as handle:
        finish(handle)
    report = write_report(recorder.record, events_of(handle.audit()), tmp_path / "report")
    assert report["kept"] == {"out": 2000}
    assert report["operators"]["out"]["queued_max"] == report["operators"]["out"]["queued_end"] == 0
    assert report["verdict"] == "none, the operators kept up"
    assert "Bottleneck: none, the operators kept up." in (tmp_path / "report" / "report.html").read_text()


def test_status_and_requests_work_on_an_object_store(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendant, "ELSEWHERE_S", 0.2)
    store = Store(uri)
    assert read_status(store) is None
    with LocalEngine(hosts=1).start(slow_flow(), uri, policy=None) as handle:
        assert handle.await_begin(60) and handle.log_file == ""
        wait_for(lambda: read_status(store))
        seen = read_status(store)
        assert seen is not None and uri not in seen.base and "?" not in seen.base
        assert "work: 1 -> 2 replicas" in ask(store, seen.run, Scale({"work": 2}), "a test")
        wait_for(lambda: handle.status.replicas["work"] == 2)
        with pytest.raises(RunFailed, match="replicas must be 1"):
            ask(store, seen.run, Scale({"work": 20}), "a test")
        assert main(["stop", uri]) == 0
    assert main(["status", uri]) == 1
    assert store.names(requests.FOLDER) == []


def test_an_answer_that_comes_when_the_run_is_over_is_taken(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    inbox = Requests(store, "this")

    def ends() -> bool:
        for received in inbox.look():
            inbox.answer(received.number, Answer(result="the run stops"))
        return False

    assert ask(store, "this", Stop(), "a test", is_running=ends) == "the run stops"


def test_warnings_are_on_standard_error_and_in_the_log_file_of_a_program_without_logging(tmp_path: Path) -> None:
    program = (
        "import logging; from elastream.engine.operations.log_file import RunLog; from elastream.lanes import Store\n"
        f"logs = [RunLog(Store(r'{tmp_path}/{{n}}')) for n in (1, 2)]; RunLog.note(logs[0], 'quiet')\n"
        "logging.getLogger('elastream.run').warning('loud'); logging.getLogger('elastream.run').info('nothing')\n"
        "for log in logs: log.close()\n"
    )
    program = program.replace("{n}", "'+str(n)+r'")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == "loud\n"
    lines = (tmp_path / "1" / "logs" / "elastream.log").read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["INFO elastream.run: quiet", "WARNING elastream.run: loud"]
