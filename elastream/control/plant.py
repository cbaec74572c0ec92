"""What a control loop controls: an engine or a simulator. Both keep this contract."""

from typing import Protocol

from elastream.control.observation import Observation
from elastream.control.proposal import Decision, Move


class Plant(Protocol):
    """Something with operators whose replicas can be changed while it runs."""

    def observe(self) -> Observation:
        """Everything since the last time this was asked."""
        ...

    def apply(self, decisions: tuple[Decision, ...], restart: bool) -> None:
        """Bring these operators to the sizes decided, from the next tick on; with `restart`, by one that loses queues."""
        ...

    def place(self, moves: tuple[Move, ...]) -> None:
        """Have these replicas live where was decided, from now on, as long as their hosts live; nothing is lost by it."""
        ...
