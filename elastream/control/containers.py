"""Carrying out decisions about containers: a fleet grows or shrinks by the difference."""

from elastream.control.proposal import LevelDecision
from elastream.fleet import Fleet


def set_levels(fleet: Fleet, decisions: tuple[LevelDecision, ...]) -> None:
    """The dearest first: what is new is needed by the others, and what goes takes along those that are in it."""
    for decision in sorted(decisions, key=lambda decision: decision.level.rank, reverse=True):
        if decision.after > decision.before:
            fleet.grow(decision.level, decision.after - decision.before)
    for decision in sorted(decisions, key=lambda decision: decision.level.rank, reverse=True):
        if decision.after < decision.before:
            fleet.shrink(decision.level, decision.before - decision.after)
