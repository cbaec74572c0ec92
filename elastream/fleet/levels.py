"""The levels of containers, and the state of one of them."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """From the cheapest to the dearest. Seats are counted per host, the others in all."""

    SEAT = "seat"
    """A thread of a host. One computes at a time, the others wait for something outside."""
    HOST = "host"
    """A process in which replicas live."""
    EXECUTOR = "executor"
    """A machine, or a part of one, that Spark was given."""

    @property
    def rank(self) -> int:
        """0 for the cheapest."""
        return list(Level).index(self)

    def count(self, number: int) -> str:
        """So many of it, in words."""
        return f"{number} {self.value}{'' if number == 1 else 's'}{' per host' if self is Level.SEAT else ''}"


@dataclass(frozen=True)
class LevelState:
    """One level at one moment: planned by a decision, asked for, and there are three numbers."""

    level: Level
    there: int
    asked: int
    """As many as somebody was asked for last."""
    planned: int
    """As many as were decided."""
    most: int
    """More cannot be had, as far as is known."""
    start_s: float
    """How long one takes from being asked for to being there: learned from those that came, a guess before."""
    measured: int = 0
    """How many came since the run began, so that `start_s` is measured when it is more than 0."""
    problem: str = ""
    """Why those that were asked for are not there, when they are late."""
