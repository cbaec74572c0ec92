"""What a control loop controls: an engine or a simulator. Both keep this contract."""

from typing import Protocol

from elastream.control.observation import Observation
from elastream.control.proposal import Decision, LevelDecision, Move


class Plant(Protocol):
    """Something with operators whose replicas can be changed while it runs."""

    def observe(self) -> Observation:
        """Everything since the last time this was asked."""
        ...

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        """Bring these operators to the sizes decided, from the next tick on.

        Returns the seconds, by its clock, until they take effect. The next interval begins after that.
        """
        ...

    def pause(self, seconds: float) -> float:
        """Serve nothing for a while. Works under way are finished; tuples that wait stay.

        Returns the seconds that are left of it by the plant's clock: none in a simulation, whose clock has gone on.
        """
        ...

    def discard(self) -> None:
        """Drop all tuples that wait, and count them."""
        ...

    def place(self, moves: tuple[Move, ...]) -> None:
        """Have these replicas live where was decided, from now on, as long as their hosts live; nothing is lost by it."""
        ...

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        """Have as many containers as decided. Those that are missing are asked for; those too many hand over and go."""
        ...
