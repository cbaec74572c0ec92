"""The engine as a plant: what a control loop sees of a run, and how it changes it."""

from collections.abc import Callable

from elastream.control import Decision, LevelDecision, Move, Observation, Restart
from elastream.control.containers import set_levels
from elastream.engine.measure.observer import RunObserver
from elastream.fleet import Fleet


class EnginePlant:
    """Called by the control loop in the tick's thread, between two turns."""

    def __init__(
        self,
        observer: RunObserver,
        resize: Callable[[str, int], object],
        place: Callable[[tuple[Move, ...]], object],
        stand_still: Callable[[float, bool], object],
        restart_s: float,
        fleet: Fleet | None = None,
    ) -> None:
        """`stand_still(seconds, loses)` gives out no work for so long, and drops what waits if it loses."""
        self._observer = observer
        self._resize = resize
        self._place = place
        self._stand_still = stand_still
        self._restart_s = restart_s
        self._fleet = fleet

    def observe(self) -> Observation:
        return self._observer.end_interval()

    def apply(self, decisions: tuple[Decision, ...], restart: Restart) -> float:
        for decision in decisions:
            self._resize(decision.operator, decision.after)
        if restart is Restart.NO:
            return 0.0
        self._stand_still(self._restart_s, restart is Restart.LOSES)
        return self._restart_s

    def place(self, moves: tuple[Move, ...]) -> None:
        self._place(moves)

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        if self._fleet is not None:
            set_levels(self._fleet, decisions)
