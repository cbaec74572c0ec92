"""The life of a run, and what other threads ask of the tick: a size, a stop, something to be done in the next turn."""

import enum
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from elastream.engine.clock import Clock
from elastream.errors import RunFailed

log = logging.getLogger("elastream.run")

T = TypeVar("T")


class Phase(enum.Enum):
    """Where a run is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


class RunLife:
    """One per run, with one lock. Any thread may call all of it but the last section, which is the tick's."""

    def __init__(self, clock: Clock, wake: Callable[[], object]) -> None:
        """`wake` ends the tick's wait for its hosts."""
        self._clock = clock
        self._wake = wake
        self._lock = threading.Condition()
        self._phase = Phase.STARTING
        self._sizes: dict[str, int] = {}
        self._calls: list[Callable[[], object]] = []
        self._failure: BaseException | None = None
        """The error with which another thread ends the run."""
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None
        self.stage = ""
        """How far a start is, in words."""

    @property
    def phase(self) -> Phase:
        return self._phase

    def now(self) -> float:
        return self._clock.now()

    def wall_s(self) -> float:
        return self._clock.wall_s()

    # -- asking

    def resize(self, operator: str, replicas: int) -> None:
        """From the next turn on."""
        with self._lock:
            self._sizes[operator] = replicas
        self._wake()

    def call(self, function: Callable[[], object] = lambda: None) -> None:
        """Let the tick's thread do this in its next turn, which comes at once. An error is logged; use `ask` to get it."""
        with self._lock:
            self._calls.append(function)
        self._wake()

    def ask(self, function: Callable[[], T]) -> T:
        """Let the tick's thread do this, and wait for what it says.

        An error of the function is raised here and does not touch the run. Raises `RunFailed` when the run is over.
        """
        if self.is_here:
            # A listener to ticks asks: nobody else would answer.
            return function()
        answer: Future[T] = Future()

        def answering() -> None:
            try:
                answer.set_result(function())
            except BaseException as error:
                answer.set_exception(error)

        self.call(answering)
        while True:
            # The phase first: what was asked is answered before the run is over, or never.
            over = self._phase is Phase.OVER
            if answer.done():
                return answer.result()
            if over:
                raise RunFailed("the run is over")
            wait([answer], 0.2)

    def fail(self, error: BaseException) -> None:
        """End the run with this error, from its next turn on. Of several errors the first counts."""
        with self._lock:
            self._failure = self._failure or error
        self._wake()

    def stop(self) -> None:
        with self._lock:
            if self._phase is not Phase.OVER:
                self._phase = Phase.STOPPING
        self._wake()

    # -- waiting

    @property
    def is_here(self) -> bool:
        """True in the tick's own thread, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    def wait(self, timeout_s: float | None) -> bool:
        """Until the run is over; False when the time ran out first."""
        with self._lock:
            return self._lock.wait_for(lambda: self._phase is Phase.OVER, timeout_s)

    def wait_begun(self, timeout_s: float | None) -> bool:
        """Until the stream flows; False when the time ran out first, or the run is over."""
        with self._lock:
            self._lock.wait_for(lambda: self._phase is not Phase.STARTING, timeout_s)
            return self._phase is Phase.RUNNING

    # -- the tick's thread

    @contextmanager
    def not_begun(self) -> Iterator[None]:
        """The tick's thread is not there yet: in this block, this one does what is asked for."""
        self._thread = threading.current_thread()
        try:
            yield
        finally:
            self._thread = None

    def enter(self) -> None:
        """This thread is the tick's."""
        self._thread = threading.current_thread()

    def begun(self) -> None:
        with self._lock:
            if self._phase is Phase.STARTING:
                self._phase = Phase.RUNNING
                self._lock.notify_all()

    def over(self, error: BaseException | None) -> None:
        with self._lock:
            self.error = self.error or error
            self._phase = Phase.OVER
            self._lock.notify_all()

    def take(self) -> dict[str, int]:
        """Do what was asked for; gives the sizes that operators shall have. Raises the error of `fail`, and no other."""
        with self._lock:
            sizes, self._sizes = self._sizes, {}
            calls, self._calls = self._calls, []
            failure = self._failure
        for call in calls:
            try:
                call()
            except Exception:
                log.exception("what another thread asked the tick to do raised; the stream goes on")
        if failure is not None:
            raise failure
        return sizes
