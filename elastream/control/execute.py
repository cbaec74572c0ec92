"""Execute: carry the decisions out on the plant, all those of an interval together."""

from elastream.control.plan import Planned
from elastream.control.plant import Plant


def execute(plant: Plant, planned: Planned) -> float:
    """Return the seconds until the new sizes take effect.

    If nothing changes, the plant is left alone. Containers come first: replicas may need them.
    """
    levels = tuple(decision for decision in planned.levels if decision.changes)
    if levels:
        plant.set_levels(levels)
    rescales = tuple(decision for decision in planned.decisions if decision.rescales)
    delay_s = plant.apply(rescales) if rescales else 0.0
    if planned.moves:
        plant.place(planned.moves)
    return delay_s
