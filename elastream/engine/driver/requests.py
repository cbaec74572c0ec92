"""Requests of other threads to the driver: plain values that the next tick carries out."""

from dataclasses import dataclass

from elastream.control import LevelDecision, Move
from elastream.fleet import Level


@dataclass(frozen=True)
class SetLevel:
    """Set the number of threads in every host, of hosts, or of executors."""

    level: Level
    count: int


@dataclass(frozen=True)
class SetLevels:
    """Have the levels that a policy has decided on."""

    decisions: tuple[LevelDecision, ...]


@dataclass(frozen=True)
class PlaceLanes:
    """Have lanes live in certain hosts."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Discard:
    """Drop the tuples that wait for these operators, and count them."""

    operators: tuple[str, ...]


@dataclass(frozen=True)
class Pause:
    """Send no works for a while."""

    seconds: float


@dataclass(frozen=True)
class StopReading:
    """Read nothing more from replays in this run."""


Request = SetLevel | SetLevels | PlaceLanes | Discard | Pause | StopReading
