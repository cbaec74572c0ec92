"""The attendant of a run: writes its status, carries out requests and keeps the log file."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from elastream.control import JournalEntry
from elastream.control.refusals import Refusals
from elastream.engine.checked_sizes import check_level, check_served, check_size
from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.ports import Tick
from elastream.engine.handle import RunHandle, RunListener
from elastream.engine.operations.log_file import RunLog, open_log
from elastream.engine.operations.requests import (
    Action,
    Answer,
    Discard,
    Drain,
    Requests,
    Scale,
    Stop,
    described,
    error_words,
)
from elastream.engine.operations.snapshot import RunSnapshots
from elastream.engine.operations.status_document import write_status
from elastream.errors import BaseInUse, SettingError
from elastream.lanes.store import Store

log = logging.getLogger("elastream.run")

EVERY_S = 1.0
"""Between two documents, and two looks for requests, on a disk."""

ELSEWHERE_S = 5.0
"""The same on an object store, where every request costs money."""

FINISH_S = 0.9
"""How long the last document may take when a run is closed."""


class Attendant(RunListener):
    """One per run, with two threads: a request that waits for the driver does not delay the status."""

    def __init__(self, store: Store, resumed: str) -> None:
        self._store = store
        self._resumed = resumed
        self._log: RunLog | None = open_log(store)
        self._every_s = EVERY_S if store.is_local else ELSEWHERE_S
        self.snapshots = RunSnapshots(every_s=self._every_s, log=self._log.path if self._log else "")
        self._requests = Requests(store, self.snapshots.run)
        self._handle: RunHandle | None = None
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._phase = Phase.STARTING
        self._failures: set[str] = set()
        self._refusals = Refusals()
        self._troubled = False

    @property
    def log_path(self) -> str:
        """The log file; empty if there is none."""
        return self._log.path if self._log else ""

    # -- listening

    def on_start(self, handle: RunHandle) -> None:
        self._handle = handle
        self.snapshots.on_start(handle)
        self._note(
            f"{handle.graph.name} starts, policy {handle.policy}" + (f"; {self._resumed}" if self._resumed else "")
        )

    def begin(self) -> None:
        """Start the threads, after the driver's."""
        with suppress(OSError):
            self._requests.open()
        for name, round_ in (("status", self._describe), ("requests", self._serve)):
            thread = threading.Thread(target=self._repeat, args=(round_,), name=f"elastream-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def on_tick(self, tick: Tick) -> None:
        self.snapshots.on_tick(tick)
        for name, reason in tick.resized.items():
            self._note(f"{name}: {tick.replicas.get(name)} replicas: {reason}")

    def on_decision(self, entry: JournalEntry) -> None:
        self.snapshots.on_decision(entry)
        if entry.error:
            self._note(entry.error, logging.WARNING)
        for decision in entry.decisions:
            if self._refusals.is_new(decision):
                vetoes = "; ".join(decision.vetoes)
                self._note(f"{decision.operator}: wants {decision.asked} replicas, gets {decision.after}: {vetoes}")
        for level in entry.levels:
            if level.changes:
                self._note(f"{level.level.value}s: {level.before} -> {level.after}: {level.words}")

    def on_end(self, handle: RunHandle) -> None:
        self.close()

    def close(self) -> None:
        """Write the last document and end the threads."""
        if self._ended.is_set():
            return
        self._ended.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(FINISH_S)
        if self._log is not None:
            self._log.close()

    # -- the threads

    def _repeat(self, round_: Callable[[], bool]) -> None:
        """Until the run is over. An error is logged once and tried again in the next round."""
        while True:
            ended = self._ended.is_set()
            try:
                if not round_() or ended:
                    return
                self._troubled = False
            except Exception as error:
                if not self._troubled:
                    self._troubled = True
                    log.warning("status and requests of %s: %s; tried again", self._store, error_words(error))
                if ended:
                    return
            self._ended.wait(self._every_s)

    def _describe(self) -> bool:
        """Write the status document; False once the run is over."""
        handle = self._run
        over, failure = not handle.active, handle.failure
        self._note_progress(handle)
        if isinstance(failure, BaseInUse):
            # Another driver has the base, and writes its own.
            return False
        write_status(self._store, self.snapshots.take(str(failure) if failure else ""))
        if over:
            self._note(f"over{f', failed: {failure}' if failure else ''}", logging.ERROR if failure else logging.INFO)
        return not over

    def _note_progress(self, handle: RunHandle) -> None:
        status = handle.status
        if status.phase is not self._phase and status.phase is not Phase.OVER:
            self._phase = status.phase
            self._note(f"{status.phase.value}, entry {status.entry}")
        for words in status.failures:
            if words not in self._failures:
                self._failures.add(words)
                self._note(words, logging.WARNING)

    def _serve(self) -> bool:
        """Carry out the requests that have come; False once the run is over."""
        if not self._run.active:
            return False
        for received in self._requests.look():
            if received.request is None:
                answer = Answer(error=received.refusal)
                self._note(f"a request was {received.refusal}", logging.WARNING)
            else:
                answer = self._carried_out(received.request.action, received.request.by)
            self._requests.answer(received.number, answer)
        self._requests.forget_old_answers()
        return True

    def _carried_out(self, action: Action, by: str) -> Answer:
        words = f"{described(action)} ({by})"
        try:
            result = carry_out(self._run, action)
        except Exception as error:
            self._note(f"{words}: {error_words(error)}", logging.WARNING)
            return Answer(error=error_words(error))
        self._note(f"{words}: {result}")
        self.snapshots.note(time.time(), "request", words)
        return Answer(result=result)

    @property
    def _run(self) -> RunHandle:
        assert self._handle is not None, "an attendant listens to a run"
        return self._handle

    def _note(self, words: str, level: int = logging.INFO) -> None:
        if self._log is not None:
            with suppress(OSError, ValueError):
                self._log.note(words, level)


def carry_out(handle: RunHandle, action: Action) -> str:
    """Carry out a request, checked as a whole before anything is changed; gives the result in one line."""
    match action:
        case Stop():
            handle.request_stop()
            return "the run stops; what waits is kept for the next run with this base"
        case Drain():
            handle.drain()
            return "sources are read no more; the run ends when nothing waits"
        case Scale(replicas, levels):
            return _scale(handle, replicas, levels)
        case Discard(operators):
            if not operators:
                raise SettingError("discard: name at least one operator")
            for name in operators:
                check_served(handle.graph, name, "discard", "lanes")
            queued = sum(handle.status.queued.get(name, 0) for name in set(operators))
            handle.discard(*operators)
            return f"about {queued:,} tuples that waited for {', '.join(operators)} are dropped and counted"


def _scale(handle: RunHandle, replicas: dict[str, int], levels: dict[str, int]) -> str:
    if not replicas and not levels:
        raise SettingError("scale: name at least one operator or level, such as enrich=4 or hosts=2")
    for name, size in replicas.items():
        check_size(handle.graph, name, size)
    for level, count in levels.items():
        check_level(level, count)
    before, planned = handle.status.replicas, {state.level.value: state.planned for state in handle.fleet}
    for name, size in replicas.items():
        handle.scale(name, size, "by hand")
    for level, count in levels.items():
        handle.set_level(level, count)
    words = [f"{name}: {before.get(name, 0)} -> {size} replicas" for name, size in replicas.items()]
    words += [f"{level}s: {planned.get(level, 0)} -> {count}" for level, count in levels.items()]
    if handle.policy != "by hand":
        words.append(f"the policy {handle.policy} may change this again at once")
    return "; ".join(words)
