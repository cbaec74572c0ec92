"""Execute: carry the decisions out on the plant, all those of an interval together."""

from elastream.control.plant import Plant
from elastream.control.proposal import Decision, Move


def execute(
    plant: Plant, decisions: tuple[Decision, ...], restart: bool, moves: tuple[Move, ...] = ()
) -> tuple[Decision, ...]:
    """Gives those that changed something. Nothing to change: the plant is left alone, and not restarted either."""
    rescales = tuple(decision for decision in decisions if decision.rescales)
    if rescales:
        plant.apply(rescales, restart)
    if moves:
        plant.place(moves)
    return rescales
