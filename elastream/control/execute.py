"""Execute: carry the decisions out on the plant, all those of an interval together."""

from elastream.control.plant import Plant
from elastream.control.proposal import Decision, Move, Restart


def execute(
    plant: Plant, decisions: tuple[Decision, ...], restart: Restart, moves: tuple[Move, ...] = ()
) -> tuple[tuple[Decision, ...], float]:
    """Gives those that changed something, and for how many seconds the plant stands still for it.

    Nothing to change: the plant is left alone, and not restarted either.
    """
    rescales = tuple(decision for decision in decisions if decision.rescales)
    still_s = plant.apply(rescales, restart) if rescales else 0.0
    if moves:
        plant.place(moves)
    return rescales, still_s
