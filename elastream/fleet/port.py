"""The port `Fleet`: what a plant asks for containers. Spark and the simulator keep the same contract."""

from typing import Protocol

from elastream.fleet.levels import Level, LevelState


class Fleet(Protocol):
    """Containers of every level. Called by one thread only."""

    def look(self) -> tuple[LevelState, ...]:
        """All levels now, the cheapest first."""
        ...

    def grow(self, level: Level, by: int) -> None:
        """Plan more of a level, and ask for them. They come in their own time, or not at all."""
        ...

    def shrink(self, level: Level, by: int) -> None:
        """Plan fewer of a level: those that came last go first, after they have handed over what they have."""
        ...
