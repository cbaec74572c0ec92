"""Execute: carry the decisions out on the plant, all those of an interval together."""

from elastream.control.plan import Planned
from elastream.control.plant import Plant
from elastream.control.proposal import Restart


def execute(plant: Plant, planned: Planned, restart: Restart) -> float:
    """Gives for how many seconds the plant stands still for it.

    Nothing to change: the plant is left alone, and not restarted either. Containers come first: replicas may need them.
    """
    levels = tuple(decision for decision in planned.levels if decision.changes)
    if levels:
        plant.set_levels(levels)
    rescales = tuple(decision for decision in planned.decisions if decision.rescales)
    still_s = plant.apply(rescales, restart) if rescales else 0.0
    if planned.moves:
        plant.place(planned.moves)
    return still_s
