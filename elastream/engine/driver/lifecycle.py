"""The life of a run, and what other threads ask of the tick: a size, a stop, something to be done in the next turn."""

import enum
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import NamedTuple, TypeVar, cast

from elastream.engine.clock import Clock
from elastream.engine.driver.requests import Request
from elastream.errors import RunFailed

log = logging.getLogger("elastream.run")

T = TypeVar("T")


class Phase(enum.Enum):
    """Where a run is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


class Resize(NamedTuple):
    """A size that somebody wants an operator to have."""

    replicas: int
    reason: str


class RunLife:
    """One per run, with one lock. Any thread may call all of it but the last section, which is the tick's."""

    def __init__(self, clock: Clock, wake: Callable[[], object]) -> None:
        """`wake` ends the tick's wait for its hosts."""
        self._clock = clock
        self._wake = wake
        self._lock = threading.Condition()
        self._phase = Phase.STARTING
        self._sizes: dict[str, Resize] = {}
        self._requests: list[tuple[Request | Callable[[], object], Future[object]]] = []
        self._failure: BaseException | None = None
        """The error with which another thread ends the run."""
        self._thread: threading.Thread | None = None
        self._here: Callable[[Request], object] | None = None
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

    def resize(self, operator: str, replicas: int, reason: str) -> None:
        """From the next turn on."""
        with self._lock:
            self._sizes[operator] = Resize(replicas, reason)
        self._wake()

    def wake(self) -> None:
        """Have the next tick at once."""
        self._wake()

    def post(self, request: Request | Callable[[], object]) -> None:
        """Have the next tick carry this out; an error is logged."""
        answer: Future[object] = Future()
        answer.add_done_callback(_log_error)
        with self._lock:
            self._requests.append((request, answer))
        self._wake()

    def request(self, request: Request) -> None:
        """Have the next tick carry this out, and wait until it has.

        An error is raised here and does not touch the run. Raises `RunFailed` if the run is over.
        """
        self._ask(request)

    def ask(self, function: Callable[[], T]) -> T:
        """Have this done in the driver's thread, and wait for the answer. Errors as for `request`."""
        return cast(T, self._ask(function))

    def _ask(self, request: Request | Callable[[], object]) -> object:
        answer: Future[object] = Future()
        with self._lock:
            self._requests.append((request, answer))
        if self.is_here:
            # A listener in virtual time, or before the first tick: no other thread would answer.
            if self._here is None:
                raise RunFailed("the run has not begun: this cannot be asked for yet")
            self._carry_out(self._here)
            return answer.result()
        self._wake()
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

    # -- the driver's thread

    @contextmanager
    def not_begun(self, carry_out: Callable[[Request], object]) -> Iterator[None]:
        """The driver's thread is not there yet: in this block, this thread carries requests out."""
        self.enter(carry_out)
        try:
            yield
        finally:
            self._thread = None

    def enter(self, carry_out: Callable[[Request], object]) -> None:
        """This thread is the driver's."""
        self._thread, self._here = threading.current_thread(), carry_out

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

    def take(self, carry_out: Callable[[Request], object]) -> dict[str, Resize]:
        """Carry requests out; gives the sizes that operators shall have. Raises the error of `fail`, and no other."""
        with self._lock:
            sizes, self._sizes = self._sizes, {}
            failure = self._failure
        self._carry_out(carry_out)
        if failure is not None:
            raise failure
        return sizes

    def _carry_out(self, carry_out: Callable[[Request], object]) -> None:
        with self._lock:
            requests, self._requests = self._requests, []
        for request, answer in requests:
            try:
                answer.set_result(request() if callable(request) else carry_out(request))
            except BaseException as error:
                answer.set_exception(error)


def _log_error(answer: "Future[object]") -> None:
    error = answer.exception()
    if error is not None:
        log.error("a request to the driver failed; the stream goes on", exc_info=error)
