"""One scheduler for all processes of a simulated run: virtual time, one strand at a time, always in the same order.

A strand is a thread of a simulated process. It runs until it pauses. Then it takes the next events itself, until one of them
resumes it or another strand. So real, blocking code of the driver and of hosts is interleaved at its pauses, threads of the
operating system are seldom switched, and a seed gives the same history everywhere.
"""

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count


class Killed(BaseException):
    """The process of a strand is dead. No code of the engine may catch this and go on."""


class Process:
    """A simulated process: alive, paused or dead. Its strands see it at their next pause."""

    def __init__(self, scheduler: "Scheduler", name: str) -> None:
        self.scheduler = scheduler
        self.name = name
        self.alive = True
        self.paused_until_s = 0.0
        self.strands: list[Strand] = []
        self.owed_s = 0.0
        """Time that operations took while a lock was held. The next pause lasts longer."""

    def spawn(self, function: Callable[[], None]) -> "Strand":
        strand = Strand(self, function)
        self.strands.append(strand)
        self.scheduler.wake(strand)
        return strand

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Have the process do something: not while it is paused, and never when it is dead."""

        def do() -> None:
            if self.alive and self.paused_until_s > self.scheduler.now:
                # What came first is done first: a sum of times would be rounded.
                self.scheduler.at(self.paused_until_s, do)
            elif self.alive:
                call()

        self.scheduler.after(seconds, do)

    def check(self) -> None:
        """Raise when the process is dead: the dead change nothing."""
        if not self.alive:
            raise Killed(self.name)

    def kill(self) -> None:
        """End it at once. Strands that pause are unwound."""
        if self.alive:
            self.alive = False
            for strand in self.strands:
                self.scheduler.wake(strand)

    def pause(self, seconds: float) -> None:
        """Stop all strands for a while, as SIGSTOP does."""
        self.paused_until_s = max(self.paused_until_s, self.scheduler.now + seconds)


class Strand:
    """A thread of a simulated process."""

    def __init__(self, process: Process | None, function: Callable[[], None]) -> None:
        self.process = process
        self.function = function
        self.baton: threading.Lock | None = None
        """Held by nobody when the strand may run; None: it has not begun."""
        self.token = 0
        """Which pause is the current one: a strand is resumed once from each."""
        self.ended = False


class _Carrier:
    """A thread of the operating system that carries one strand after another."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self.baton = threading.Lock()
        self.baton.acquire()
        self.strand: Strand | None = None
        threading.Thread(target=self._carry, name="elastream-strand", daemon=True).start()

    def _carry(self) -> None:
        while True:
            self.baton.acquire()
            strand = self.strand
            if strand is None:
                return
            assert strand.process is not None
            try:
                strand.process.check()
                strand.function()
            except Killed:
                pass
            except BaseException as error:
                self._scheduler.failure = error
            strand.ended, self.strand = True, None
            strand.process.strands.remove(strand)
            self._scheduler.idle.append(self)
            self._scheduler.to_main()


class Scheduler:
    """Events in the order of their times; those of one time in the order in which they were made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.until_s = float("inf")
        self.over: Callable[[], bool] = lambda: False
        """True when no further event shall be taken."""
        self.idle: list[_Carrier] = []
        self.failure: BaseException | None = None
        self.spent_s = 0.0
        """Time that passed for what is done at once."""
        self._at_once: Process | None = None
        self._events: list[tuple[float, int, Callable[[], object] | None, Strand | None, int]] = []
        self._numbers = count()
        self._main = Strand(None, lambda: None)
        self._main.baton = threading.Lock()
        self._main.baton.acquire()
        self._current = self._main

    # -- anywhere

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Have something done later."""
        heapq.heappush(self._events, (self.now + max(0.0, seconds), next(self._numbers), call, None, 0))

    def at(self, time_s: float, call: Callable[[], object]) -> None:
        """Have something done at a time that has not passed."""
        heapq.heappush(self._events, (time_s, next(self._numbers), call, None, 0))

    def wake(self, strand: Strand, at_s: float | None = None) -> None:
        """End the pause of a strand, now or at a time that has not passed."""
        time_s = self.now if at_s is None else at_s
        heapq.heappush(self._events, (time_s, next(self._numbers), None, strand, strand.token))

    @property
    def process(self) -> Process:
        """The process that runs now."""
        process = self._at_once or self._current.process
        assert process is not None, "no process runs"
        return process

    # -- the owner of the scheduler

    def run(self) -> None:
        """Take events until it is over, there are none, or time is up."""
        self._take_events(self._main)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def close(self) -> None:
        """End all threads; every process must be dead and unwound."""
        for carrier in self.idle:
            carrier.strand = None
            carrier.baton.release()
        self.idle.clear()

    @contextmanager
    def at_once(self, process: Process) -> Iterator[None]:
        """Do something of a process without a strand: time that it pauses is added up in `spent_s`."""
        before = self._at_once, self.spent_s
        self._at_once, self.spent_s = process, 0.0
        try:
            yield
        finally:
            self._at_once, self.spent_s = before

    # -- inside a process

    def pause(self, seconds: float) -> None:
        """Let virtual time pass for what runs now; raises `Killed` when its process dies meanwhile."""
        process = self.process
        process.check()
        seconds += process.owed_s
        process.owed_s = 0.0
        if self._at_once is not None:
            self.spent_s += seconds
            return
        until_s = self.now + seconds
        next_s = self._events[0][0] if self._events else float("inf")
        if until_s < min(next_s, self.until_s) and process.paused_until_s <= self.now:
            # Nobody else would act before.
            self.now = until_s
            return
        self.wait(seconds)

    def wait(self, seconds: float) -> None:
        """The same for a strand, but `wake` ends it."""
        strand = self._current
        assert strand.process is not None and self._at_once is None, "only strands wait"
        self.wake(strand, self.now + seconds)
        self._take_events(strand)
        strand.process.check()

    # -- events

    def to_main(self) -> None:
        """The strand that ran is over, or nothing shall happen any more: whoever called `run` goes on."""
        assert self._main.baton is not None
        self._current = self._main
        self._main.baton.release()

    def _take_events(self, me: Strand) -> None:
        """Take events on the stack of a strand until it shall go on; for the main strand, until all is over."""
        while True:
            done = self.failure is not None or not self._events or self.now >= self.until_s or self.over()
            if done:
                if me is self._main:
                    return
                self.to_main()
                self._await_baton(me)
                return
            self.now, _, call, strand, token = heapq.heappop(self._events)
            if call is not None:
                try:
                    call()
                except BaseException as error:
                    self.failure = error
            elif strand is not None and self._may_resume(strand, token):
                if strand is me:
                    return
                self._switch(strand)
                self._await_baton(me)
                if me is not self._main:
                    return

    def _may_resume(self, strand: Strand, token: int) -> bool:
        process = strand.process
        if strand.ended or token != strand.token or process is None:
            return False
        if process.alive and process.paused_until_s > self.now:
            self.wake(strand, process.paused_until_s)
            return False
        strand.token += 1
        return True

    def _switch(self, strand: Strand) -> None:
        if strand.baton is None:
            carrier = self.idle.pop() if self.idle else _Carrier(self)
            carrier.strand, strand.baton = strand, carrier.baton
        self._current = strand
        strand.baton.release()

    def _await_baton(self, me: Strand) -> None:
        assert me.baton is not None
        me.baton.acquire()
        self._current = me
