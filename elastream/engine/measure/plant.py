"""The engine as a plant: what a control loop sees of a run, and how it changes it."""

from elastream.control import Decision, LevelDecision, Move, Observation
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.requests import Discard, Pause, PlaceLanes, SetLevels
from elastream.engine.measure.observer import RunObserver
from elastream.topology import Graph, Kind


class EnginePlant:
    """Called by the control loop, beside the driver. Every change is a request that the driver's next tick carries out."""

    def __init__(self, graph: Graph, observer: RunObserver, life: RunLife) -> None:
        self._discardable = tuple(o.name for o in graph.served if o.kind is not Kind.OUTPUT)
        self._observer = observer
        self._life = life

    def observe(self) -> Observation:
        return self._observer.end_interval()

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        for decision in decisions:
            self._life.resize(decision.operator, decision.after, decision.words)
        return 0.0

    def pause(self, seconds: float) -> float:
        self._life.request(Pause(seconds))
        return seconds

    def discard(self) -> None:
        """Drop all tuples that wait for operators, and count them. Outputs keep theirs."""
        self._life.request(Discard(self._discardable))

    def place(self, moves: tuple[Move, ...]) -> None:
        self._life.request(PlaceLanes(moves))

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        self._life.request(SetLevels(decisions))
