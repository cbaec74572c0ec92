"""The engine as a plant: what a control loop sees of a run, and how it changes it."""

from collections.abc import Callable

from elastream.control import Decision, LevelDecision, Move, Observation
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
        pause: Callable[[float], object],
        discard: Callable[[], object],
        fleet: Fleet | None = None,
    ) -> None:
        self._observer = observer
        self._resize = resize
        self._place = place
        self._pause = pause
        self._discard = discard
        self._fleet = fleet

    def observe(self) -> Observation:
        return self._observer.end_interval()

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        for decision in decisions:
            self._resize(decision.operator, decision.after)
        return 0.0

    def pause(self, seconds: float) -> float:
        self._pause(seconds)
        return seconds

    def discard(self) -> None:
        self._discard()

    def place(self, moves: tuple[Move, ...]) -> None:
        self._place(moves)

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        if self._fleet is not None:
            set_levels(self._fleet, decisions)
