"""The port `Machines`: executors as a fleet sees them, and those of which there will be no more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

MANY = 10_000
"""As many as anybody has."""


@dataclass(frozen=True)
class MachineFacts:
    """Executors at one moment."""

    names: tuple[str, ...]
    """Those that are there, in the order in which they came."""
    room: int
    """How many hosts they have room for, all together."""
    per_machine: int
    """How many hosts one of them has room for."""


class Machines(Protocol):
    """Executors. What is asked for is done by somebody else in his own time: nobody waits."""

    @property
    def most(self) -> int:
        """More cannot be had, as far as is known; as many as there are, when none can be asked for."""
        ...

    def look(self) -> MachineFacts: ...

    def ask(self, total: int) -> None:
        """Have so many in all."""
        ...

    def give_back(self, names: tuple[str, ...], total: int) -> None:
        """Let these go; so many stay."""
        ...


class FixedMachines:
    """This machine alone, or executors that somebody else decides about: none can be asked for."""

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room

    @property
    def most(self) -> int:
        return 1

    def look(self) -> MachineFacts:
        room = self._room()
        return MachineFacts(("all",), room, room)

    def ask(self, total: int) -> None:
        """There is nobody to ask."""

    def give_back(self, names: tuple[str, ...], total: int) -> None:
        """They stay."""
