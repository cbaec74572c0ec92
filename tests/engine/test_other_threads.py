"""Threads beside the tick's: they read while it writes, what they ask for may fail, and listeners miss nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flows import each_once, finish, ids_of, numbers

from elastream import RunListener, Topology, sources
from elastream.control import JournalEntry, Policy, Proposal
from elastream.engine.clock import SteadyClock
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.status import RunStatus
from elastream.engine.handle import RunHandle
from elastream.errors import RunFailed, SettingError
from elastream.fleet.levels import Level
from elastream.testing import LocalEngine
from elastream.workload import constant


class OfTheDriver(HostTable):
    """A table of the driver: another thread that reads it may meet it half changed."""

    def __iter__(self) -> Any:
        raise AssertionError("read by another thread")

    __len__ = __getitem__ = __iter__  # type: ignore[assignment]


def test_whoever_watches_reads_the_published_status_and_nothing_of_the_driver(tmp_path: Path) -> None:
    with LocalEngine(virtual=True).start(numbers(100).output("out", after="in"), str(tmp_path)) as handle:
        finish(handle)
        object.__setattr__(handle._run.driver.tables, "hosts", OfTheDriver())
        assert [host.host for host in handle.observe(1e9).hosts] == [0, 1]
        assert handle.totals("out").received == 100 and handle.status.in_flight == 0
        assert handle.overdue() == [] and handle.fleet and "over" in handle._repr_html_()


def test_a_status_never_changes_after_it_was_published(tmp_path: Path) -> None:
    seen: list[tuple[RunStatus, str]] = []
    flow = numbers(4000, seconds=2.0)
    flow.map("a", lambda row: row, after="in", replicas=(1, 4)).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        handle.subscribe(lambda tick: seen.append((handle.status, repr(handle.status))))
        finish(handle)
    assert len({status.entry for status, _ in seen}) > 20
    assert all(repr(status) == then for status, then in seen)


@contextmanager
def ticking(life: RunLife) -> Iterator[list[BaseException]]:
    """A thread that takes what is asked, as the tick's does, until an error ends it."""
    ended: list[BaseException] = []
    stop = threading.Event()

    def ticks() -> None:
        life.enter(lambda request: None)
        life.begun()
        try:
            while not stop.wait(0.001):
                life.take(lambda request: None)
        except BaseException as error:
            ended.append(error)
        life.over(ended[0] if ended else None)

    thread = threading.Thread(target=ticks)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join()


def test_an_error_of_what_is_asked_goes_to_the_asker_and_the_run_goes_on() -> None:
    life = RunLife(SteadyClock(), lambda: None)
    with ticking(life) as ended:
        with pytest.raises(ZeroDivisionError):
            life.ask(lambda: 1 / 0)
        with pytest.raises(SettingError, match="no such"):
            life.ask(lambda: raising(SettingError("no such")))
        assert life.ask(lambda: 7) == 7
        assert ended == []


def test_an_error_of_what_nobody_waits_for_is_logged_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    life = RunLife(SteadyClock(), lambda: None)
    with ticking(life) as ended:
        life.post(lambda: 1 / 0)
        assert life.ask(lambda: 7) == 7
        assert ended == [] and "the stream goes on" in caplog.text


def test_fail_ends_the_run_with_its_first_error() -> None:
    life = RunLife(SteadyClock(), lambda: None)
    with ticking(life) as ended:
        life.fail(SettingError("first"))
        life.fail(SettingError("second"))
        assert life.wait(60)
    assert str(ended[0]) == "first" and life.error is ended[0]
    with pytest.raises(RunFailed, match="over"):
        life.ask(lambda: 7)


def raising(error: Exception) -> None:
    raise error


def test_the_ticks_own_thread_asks_itself() -> None:
    life = RunLife(SteadyClock(), lambda: None)
    with ticking(life):
        assert life.ask(lambda: life.ask(lambda: 7)) == 7


def test_a_level_that_cannot_be_set_is_told_to_whoever_asked_and_the_stream_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalEngine().start(numbers(500, seconds=1).output("out", after="in"), str(tmp_path)) as handle:
        assert handle.await_begin(60)
        monkeypatch.setattr(handle._run.driver.fleet, "set", lambda level, count: raising(OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            handle.set_level("host", 3)
        finish(handle)
        assert ids_of(handle) == each_once(500)


class Log(RunListener):
    """Writes down everything that it is told."""

    def __init__(self) -> None:
        self.active: list[bool] = []
        self.ticks: list[Tick] = []
        self.entries: list[JournalEntry] = []

    def on_start(self, handle: RunHandle) -> None:
        self.active.append(handle.active)

    def on_tick(self, tick: Tick) -> None:
        self.ticks.append(tick)

    def on_decision(self, entry: JournalEntry) -> None:
        self.entries.append(entry)


class Waits(Policy):
    name = "waits"

    def propose(self, observation: Any) -> Proposal:
        return Proposal(())


def test_listeners_hear_everything_from_the_first_tick_on(tmp_path: Path) -> None:
    flow = Topology("t").source("in", sources.replay(constant(100, 10))).output("out")
    log, ticks = Log(), list[Tick]()
    how: dict[str, Any] = {"policy": Waits(), "td_s": 1.0, "benchmark_s": 0.0}
    with LocalEngine(virtual=True).start(flow, str(tmp_path), listeners=[log, ticks.append], **how) as handle:
        finish(handle)
        entered = handle.audit().entered
    assert log.active == [True]
    assert sum(tick.counts("in").entered for tick in ticks) == entered == 1000
    assert log.ticks == ticks
    assert [entry.number for entry in log.entries] == list(range(len(log.entries))) and log.entries


def test_a_listener_that_cannot_start_ends_the_start_and_lets_go_of_the_base(tmp_path: Path) -> None:
    class Broken(RunListener):
        def on_start(self, handle: RunHandle) -> None:
            raise SettingError("no recorder")

    flow = numbers(100).output("out", after="in").topology.build()
    with pytest.raises(SettingError, match="no recorder"):
        LocalEngine(virtual=True).start(flow, str(tmp_path), listeners=[Broken()])
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(100)


def test_a_listener_may_ask_for_something_before_the_tick_is_there(tmp_path: Path) -> None:
    class Asks(RunListener):
        def on_start(self, handle: RunHandle) -> None:
            handle.set_level("host", 3)
            handle.discard("a")

    flow = numbers(100).map("a", lambda row: row, after="in").output("out").topology.build()
    with LocalEngine(virtual=True).start(flow, str(tmp_path), listeners=[Asks()]) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(100)
        assert [state.planned for state in handle.fleet if state.level is Level.HOST] == [3]
