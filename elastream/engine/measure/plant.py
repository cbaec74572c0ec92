"""The engine as a plant: what a control loop sees of a run, and how it changes it."""

from collections.abc import Callable

from elastream.control import Decision, Move, Observation
from elastream.engine.measure.observer import RunObserver


class EnginePlant:
    """Called by the control loop in the tick's thread, between two turns."""

    def __init__(
        self,
        observer: RunObserver,
        resize: Callable[[str, int], object],
        place: Callable[[tuple[Move, ...]], object],
    ) -> None:
        self._observer = observer
        self._resize = resize
        self._place = place

    def observe(self) -> Observation:
        return self._observer.end_interval()

    def apply(self, decisions: tuple[Decision, ...], restart: bool) -> None:
        for decision in decisions:
            self._resize(decision.operator, decision.after)

    def place(self, moves: tuple[Move, ...]) -> None:
        self._place(moves)
