"""What a control loop controls: an engine or a simulator. Both keep this contract."""

from typing import Protocol

from elastream.control.observation import Observation
from elastream.control.proposal import Decision, LevelDecision, Move, Restart


class Plant(Protocol):
    """Something with operators whose replicas can be changed while it runs."""

    def observe(self) -> Observation:
        """Everything since the last time this was asked."""
        ...

    def apply(self, decisions: tuple[Decision, ...], restart: Restart) -> float:
        """Bring these operators to the sizes decided, from the next tick on, or by a restart as other systems have it.

        Gives for how many seconds from now on, by its clock, it stands still. The next interval begins after that.
        """
        ...

    def place(self, moves: tuple[Move, ...]) -> None:
        """Have these replicas live where was decided, from now on, as long as their hosts live; nothing is lost by it."""
        ...

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        """Have as many containers as decided. Those that are missing are asked for; those too many hand over and go."""
        ...
