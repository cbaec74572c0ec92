"""Work that runs beside the driver: in a thread of its own, or inline in virtual time."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

log = logging.getLogger("elastream.run")

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

MAX_WAITING = 2000
"""Events that wait in a mailbox. If there are more, the oldest are dropped: memory stays bounded."""


class Mailbox(Protocol[T_contra]):
    """Takes events and hands each to one function, in order. An error of the function is logged and stops nothing."""

    def put(self, event: T_contra) -> None:
        """Returns at once, except inline. Any thread may call this."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Handle what was put before; False if that takes longer. Called from the handling thread it returns at once."""
        ...

    @property
    def is_here(self) -> bool:
        """True in the thread that handles events."""
        ...


class Inline(Generic[T]):
    """Handles an event in the thread that puts it. The order of everything is the same in every run."""

    def __init__(self, name: str, handle: Callable[[T], object]) -> None:
        self._name = name
        self._handle = handle

    def put(self, event: T) -> None:
        _handle(self._name, self._handle, event)

    def close(self, timeout_s: float) -> bool:
        return True

    @property
    def is_here(self) -> bool:
        return False


class ThreadMailbox(Generic[T]):
    """Handles events in one long-lived daemon thread, which starts with the first event."""

    def __init__(self, name: str, handle: Callable[[T], object], max_waiting: int = MAX_WAITING) -> None:
        self._name = name
        self._handle = handle
        self._max_waiting = max_waiting
        self._events: deque[T] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._behind = False

    def put(self, event: T) -> None:
        with self._changed:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"elastream-{self._name}", daemon=True)
                self._thread.start()
            if len(self._events) >= self._max_waiting:
                self._events.popleft()
                if not self._behind:
                    self._behind = True
                    log.warning("%s: too slow, the oldest events are dropped; the stream is not affected", self._name)
            self._events.append(event)
            self._changed.notify_all()

    def close(self, timeout_s: float) -> bool:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is None or self.is_here:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._closed)
                if not self._events:
                    return
                event = self._events.popleft()
            _handle(self._name, self._handle, event)


def mailbox(name: str, handle: Callable[[T], object], *, inline: bool) -> Mailbox[T]:
    return Inline(name, handle) if inline else ThreadMailbox(name, handle)


def _handle(name: str, handle: Callable[[T], object], event: T) -> None:
    try:
        handle(event)
    except Exception:
        log.exception("%s: an error; the stream is not affected", name)
