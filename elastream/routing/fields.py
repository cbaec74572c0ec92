"""The grouping `fields`: tuples of one key go to one replica."""

from dataclasses import dataclass

from elastream.routing.base import Grouping, SimulatedAs


@dataclass(frozen=True)
class Fields(Grouping):
    """Tuples with the same values in these columns go to the same replica, in their order."""

    columns: tuple[str, ...] = ()
    name = "fields"
    needs_columns = True
    simulated_as = SimulatedAs.POPULARITY

    @property
    def keyed(self) -> bool:
        return True
