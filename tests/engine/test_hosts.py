"""Hosts that die, hang, are cut off or are not what they say: the stream goes on, and every tuple arrives once."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flows import collect, each_once, files_by_delivery, finish, ids_in, ids_of, numbers, same, wait_for

from elastream import Settings, Topology, WorkSettings, sources
from elastream.engine import messages, wire
from elastream.engine.handle import RunHandle
from elastream.engine.hosts import spark_hosts
from elastream.engine.hosts.link import Event, HostCame, HostsFailed
from elastream.engine.hosts.local_hosts import LocalHosts
from elastream.engine.hosts.server import HostServer
from elastream.engine.messages import LaneReceipt, Ready, Receipt, Receipts
from elastream.testing import LocalEngine
from elastream.workload import constant

PROCESSES = LocalEngine(processes=True)

Row = dict[str, Any]


def hosts_of(handle: RunHandle) -> LocalHosts:
    found = handle._run.hosts
    assert isinstance(found, LocalHosts)
    return found


def pid_of(handle: RunHandle, host: int) -> int | None:
    return next((known.pid for known in handle.status.hosts if known.number == host), None)


@pytest.mark.parametrize("how", ["kill", "cut", "stop"])
def test_a_host_that_is_killed_cut_off_or_frozen_costs_no_tuple(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "sink"
    folder.mkdir()
    flow = Topology("killed")
    flow.source("in", sources.replay(constant(1500, 6)))
    flow.batch("a", same, after="in", replicas=3).map("b", lambda row: row, replicas=3)
    flow.sink("end", files_by_delivery(folder), after="b", replicas=3)
    settings = Settings(works=WorkSettings(timeout_s=2.0))
    gone: list[int] = []
    with PROCESSES.start(flow, str(tmp_path / "base"), settings=settings) as handle:
        for host in (0, 1, 0):
            wait_for(lambda: len(handle.status.hosts) == 2 or not handle.active)
            pid = pid_of(handle, host)
            if pid is None or not handle.active:
                break
            if how == "cut":
                server = hosts_of(handle)._server
                handle._run.life.post(lambda: server.drop(host))  # noqa: B023
            else:
                os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
            gone.append(pid)
            wait_for(lambda: pid_of(handle, host) != pid or not handle.active)  # noqa: B023
        finish(handle)
        audit = handle.audit()
    assert gone
    assert ids_in(folder) == each_once(9000)
    assert (audit.entered, audit.finished, audit.dropped, audit.problems) == (9000, 9000, 0, ())


def ends_its_process(row: Row) -> Row:
    if row["id"] == 137:
        os._exit(3)
    return row


def test_a_tuple_that_ends_its_process_goes_to_the_dead_letters_and_all_others_arrive(tmp_path: Path) -> None:
    flow = numbers(400).map("fragile", ends_its_process, after="in", replicas=2).topology
    flow.map("other", lambda row: row, after="in", replicas=2)
    flow.output("out", after="fragile").topology.output("others", after="other")
    with PROCESSES.start(flow, str(tmp_path)) as handle:
        finish(handle)
        letters, audit = handle.dead_letters().to_pylist(), handle.audit()
        assert ids_of(handle) == Counter(n for n in range(400) if n != 137)
        assert ids_of(handle, "others") == each_once(400)
    assert [(letter["operator"], letter["row"]) for letter in letters] == [("fragile", '{"id": 137}')]
    assert "the process that served it ended, three times in a row" in letters[0]["error"]
    assert (audit.dropped, audit.problems) == (1, ())


def test_a_sink_that_ends_its_process_gets_the_same_rows_again_and_then_no_more(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()

    def store(batch: Any, delivery: Any) -> None:
        ids = batch.column("id").to_pylist()
        with open(seen / delivery.id, "a", encoding="utf-8") as file:
            file.write(f"{ids}\n")
        if 77 in ids:
            os._exit(4)

    with PROCESSES.start(numbers(300).sink("end", store, after="in"), str(tmp_path / "base")) as handle:
        finish(handle)
        letters, audit = handle.dead_letters().to_pylist(), handle.audit()
    tries = {path.name: path.read_text().splitlines() for path in seen.iterdir()}
    # Every delivery had the same rows each time it came, and one of them came again and again.
    assert all(len(set(lines)) == 1 for lines in tries.values())
    assert max(len(lines) for lines in tries.values()) == 4
    assert any(letter["row"] == '{"id": 77}' for letter in letters)
    assert audit.entered == 300 == audit.finished + audit.dropped and audit.problems == ()
    assert audit.dropped == len(letters)


def test_an_operator_that_takes_long_for_one_tuple_is_shown_and_holds_up_no_other_lane(tmp_path: Path) -> None:
    gate = threading.Event()

    def slow_once(row: Row) -> Row:
        if row["id"] == 0:
            gate.wait(60)
        return row

    flow = numbers(2000, seconds=1).map("slow", slow_once, after="in", replicas=4, waits=True).topology
    flow.map("other", lambda row: row, after="in", replicas=2)
    flow.output("out", after="slow").topology.output("others", after="other")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        wait_for(lambda: handle.totals("other").processed == 2000)
        # Of the operator itself only one lane waits: the others have served theirs.
        wait_for(
            lambda: sum(known.queued > 0 for lane, known in handle.status.lanes.items() if lane.operator == "slow") == 1
        )
        [overdue] = handle.overdue(0.5)
        assert (overdue.operator, len(overdue.replicas)) == ("slow", 1)
        assert str(overdue).startswith(f"slow, replica {overdue.replicas[0]}: ")
        gate.set()
        finish(handle)
        assert ids_of(handle) == each_once(2000)


def never_returns(row: Row) -> Row:
    if row["id"] == 50:
        time.sleep(10_000)
    return row


def test_with_a_time_out_a_tuple_that_never_returns_goes_to_the_dead_letters(tmp_path: Path) -> None:
    flow = numbers(200).map("stuck", never_returns, after="in", replicas=2).output("out")
    with PROCESSES.start(flow, str(tmp_path), settings=Settings(works=WorkSettings(timeout_s=1.0))) as handle:
        finish(handle)
        assert ids_of(handle) == Counter(n for n in range(200) if n != 50)
        assert [letter["row"] for letter in handle.dead_letters().to_pylist()] == ['{"id": 50}']


def test_stop_returns_whatever_operators_do_and_the_next_run_serves_every_tuple(tmp_path: Path) -> None:
    stuck = threading.Event()

    def hangs(row: Row) -> Row:
        if not (tmp_path / "mended").exists():
            stuck.set()
            time.sleep(10_000)
        return row

    flow = numbers(100).map("hangs", hangs, after="in", replicas=2).output("out").topology.build()
    handle = LocalEngine().start(flow, str(tmp_path / "base"))
    assert stuck.wait(60)
    began = time.monotonic()
    handle.stop()
    # Bounded by what `stop` waits for, on any machine: works, hosts, and a tick that writes.
    assert time.monotonic() - began < 10
    assert not handle.active
    (tmp_path / "mended").touch()
    with LocalEngine().start(flow, str(tmp_path / "base")) as again:
        finish(again)
        assert ids_of(again) == each_once(100)


def test_timing_operators_of_which_one_hangs_does_not_keep_a_run_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elastream.engine.driver.beginning.ALL_HOSTS_S", 0.5)
    hung = tmp_path / "hung"

    def hangs_once(row: Row) -> Row:
        if not hung.exists():
            hung.touch()
            time.sleep(10_000)
        return row

    flow = numbers(100).map("hangs", hangs_once, after="in").output("out")
    with PROCESSES.start(flow, str(tmp_path / "base"), policy="psps", td_s=1.0, benchmark_s=0.5) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(100)


def greeted(server: HostServer, secret: bytes, ready: Ready) -> socket.socket:
    connection = socket.create_connection(server.address, timeout=10)
    try:
        wire.greet_as_host(connection, secret)
    except ConnectionError:
        connection.close()
        raise
    connection.sendall(wire.framed(messages.encode(ready)))
    return connection


def test_whoever_does_not_know_the_secret_is_no_host_and_learns_nothing() -> None:
    server = HostServer()
    try:
        with pytest.raises((wire.NotOurs, ConnectionError)):
            greeted(server, b"guess" * 6, Ready(0, "h1", 1, "here"))
        with socket.create_connection(server.address, timeout=10) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64)
            received = b""
            with contextlib.suppress(ConnectionError):
                while part := stranger.recv(4096):
                    received += part
            # A nonce, and nothing else.
            assert len(received) == wire.NONCE
        assert server.poll(0.1) == []
        with greeted(server, server.secret, Ready(0, "h1", 1, "here")):
            events: list[Any] = []
            collect(events, lambda: server.poll(0.1))
            assert [type(event).__name__ for event in events] == ["HostCame"]
    finally:
        server.close()


@pytest.mark.parametrize(
    "message",
    [b"", b"\xff\xff", b"\x92\xa7nothing\x01", messages.encode(Receipts([Receipt(1)]))[:-1] + b"\xc1"],
    ids=["nothing", "no MessagePack", "an unknown kind", "cut and damaged"],
)
def test_a_host_that_says_what_no_host_says_is_dropped(message: bytes) -> None:
    server = HostServer()
    try:
        with greeted(server, server.secret, Ready(0, "h1", 1, "here")) as connection:
            events: list[Any] = []
            collect(events, lambda: server.poll(0.1))
            connection.sendall(wire.framed(message))
            collect(events, lambda: server.poll(0.1), count=2)
        assert [type(event).__name__ for event in events] == ["HostCame", "HostWent"]
    finally:
        server.close()


def test_a_length_that_no_message_has_ends_the_connection() -> None:
    server = HostServer()
    try:
        with greeted(server, server.secret, Ready(0, "h1", 1, "here")) as connection:
            events: list[Any] = []
            collect(events, lambda: server.poll(0.1))
            connection.sendall(struct.pack("<I", wire.MOST_BYTES + 1))
            collect(events, lambda: server.poll(0.1), count=2)
        assert type(events[-1]).__name__ == "HostWent"
    finally:
        server.close()


def test_an_older_elastream_on_some_machine_is_named() -> None:
    server = HostServer()
    try:
        with greeted(server, server.secret, Ready(0, "h1", 1, "oldtimer", version=1)):
            events: list[Any] = []
            collect(events, lambda: server.poll(0.1))
        assert "machine oldtimer speaks version 1" in events[0].reason
    finally:
        server.close()


def test_a_second_copy_of_a_host_waits_until_the_first_is_gone() -> None:
    server = HostServer()
    try:
        events: list[Any] = []
        first = greeted(server, server.secret, Ready(0, "h1", 1, "here"))
        collect(events, lambda: server.poll(0.1))
        second = greeted(server, server.secret, Ready(0, "h2", 2, "here"))
        for _ in range(5):
            events.extend(server.poll(0.1))
        assert [event.incarnation for event in events] == ["h1"]
        first.close()
        collect(events, lambda: server.poll(0.1), count=3)
        assert [(type(e).__name__, e.incarnation) for e in events[1:]] == [("HostWent", "h1"), ("HostCame", "h2")]
        second.close()
    finally:
        server.close()


def test_the_receipt_of_a_zombie_counts_for_nothing(tmp_path: Path) -> None:
    flow = numbers(500, seconds=2).batch("work", same, after="in", replicas=2).output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        server = hosts_of(handle)._server
        wait_for(lambda: handle.totals("work").processed > 50)
        forged = Receipt(10**9, [LaneReceipt("work", 0, consumed=1, processed=1)])
        zombie = greeted(server, server.secret, Ready(0, "zombie", 1, "here"))
        zombie.sendall(wire.framed(messages.encode(Receipts([forged]))))
        finish(handle)
        zombie.close()
        assert ids_of(handle) == each_once(500)
        assert handle.audit().problems == ()


def test_a_listener_that_raises_does_not_stop_the_stream(tmp_path: Path) -> None:
    with LocalEngine().start(numbers(100).output("out", after="in"), str(tmp_path)) as handle:
        handle.subscribe(lambda tick: 1 / 0)
        finish(handle)
        assert ids_of(handle) == each_once(100)


def test_a_listener_may_stop_the_run(tmp_path: Path) -> None:
    flow = numbers(2000, seconds=20).output("out", after="in")
    handle = LocalEngine().start(flow, str(tmp_path))
    handle.subscribe(lambda tick: handle.stop() if tick.number > 5 else None)
    assert handle.await_end(60)
    assert not handle.active and handle.audit().problems == ()


class JobsThatFail:
    """In the place of a Spark context: a job ends with an error, after its host came or before."""

    def __init__(self, *, comes: bool) -> None:
        self.jobs = 0
        self._comes = comes
        self._seen = threading.Event()
        self._new: list[Event] = []

    # As the context.

    def setJobGroup(self, group: str, what: str, interruptOnCancel: bool) -> None:  # noqa: N802, N803 - Spark's names
        self._seen.clear()

    def parallelize(self, numbers: list[int], parts: int) -> "JobsThatFail":
        return self

    def foreachPartition(self, task: Any) -> None:  # noqa: N802 - Spark's name
        self.jobs += 1
        if self._comes:
            self._new.append(HostCame(0, str(self.jobs), 1, "here", "driver"))
            assert self._seen.wait(10)
        raise RuntimeError("Job cancelled")

    # As the server that hosts connect to.

    whereabouts = (("127.0.0.1", 0), b"")

    def poll(self, timeout_s: float) -> list[Event]:
        events, self._new = self._new, []
        return events

    def polled(self) -> None:
        self._seen.set()

    def wake(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("comes", [True, False])
def test_hosts_that_come_and_are_replaced_again_and_again_do_not_end_a_run(
    monkeypatch: pytest.MonkeyPatch, comes: bool
) -> None:
    """A tuple that hangs costs a host each time it is tried, a dozen times until it stands alone."""
    monkeypatch.setattr(spark_hosts, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(spark_hosts, "LONGEST_WAIT_S", 0.001)
    monkeypatch.setattr(spark_hosts, "is_stopped", lambda spark: False)
    jobs = JobsThatFail(comes=comes)
    hosts = spark_hosts.SparkHosts(SimpleNamespace(sparkContext=jobs), "127.0.0.1")  # type: ignore[arg-type]
    hosts._server.close()
    hosts._server = jobs  # type: ignore[assignment]
    hosts.keep(0)
    failed: list[Event] = []

    def enough() -> bool:
        events = hosts.poll(0.0)
        failed.extend(event for event in events if isinstance(event, HostsFailed))
        if any(isinstance(event, HostCame) for event in events):
            jobs.polled()
        return bool(failed) or jobs.jobs > 3 * spark_hosts.MOST_FAILURES

    wait_for(enough, 20)
    hosts.close()
    assert bool(failed) is not comes
    assert comes or jobs.jobs == spark_hosts.MOST_FAILURES
