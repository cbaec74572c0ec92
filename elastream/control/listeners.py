"""Call listeners so that none of them can stop the stream or keep the others from being called."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Functions that are called with every event of one kind, in the order in which they were added."""

    def __init__(self, event: str, log: logging.Logger) -> None:
        """`event` names what is listened to, in the plural: ticks, decisions."""
        self._event = event
        self._log = log
        self._listeners: list[Callable[[T], object]] = []
        self._failed: set[int] = set()
        """Places of listeners whose error has been logged."""

    def append(self, listener: Callable[[T], object]) -> None:
        """Call this function from the next event on. Any thread may add one."""
        self._listeners.append(listener)

    def tell(self, event: T) -> None:
        """Call every listener. The first error of each is logged with its name, later ones are not."""
        for place, listener in enumerate(list(self._listeners)):
            try:
                listener(event)
            except Exception:
                if place not in self._failed:
                    self._failed.add(place)
                    self._log.exception(
                        "listener %s to %s raised; the stream goes on, and further errors of this listener are not shown",
                        _name(listener),
                        self._event,
                    )


def _name(listener: Callable[[T], object]) -> str:
    named = listener if hasattr(listener, "__qualname__") else type(listener)
    module = getattr(named, "__module__", None)
    return f"{module}.{named.__qualname__}" if module else named.__qualname__
