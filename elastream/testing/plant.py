"""A plant that plays observations back and remembers what it was told."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from elastream.control import Decision, LevelDecision, Move, Observation
from elastream.fleet import Level


class ScriptedPlant:
    """Gives one observation after another, with the replicas that were decided so far; at the end, the last one again."""

    def __init__(self, script: Iterable[Observation], clock: Callable[[], float] = lambda: 0.0) -> None:
        self._script = iter(script)
        self._clock = clock
        self._last: Observation | None = None
        self._sizes: dict[str, int] = {}
        self.applied: list[tuple[Decision, ...]] = []
        self.pauses: list[float] = []
        """Seconds of each."""
        self.discards = 0
        self.moves: list[tuple[Move, ...]] = []
        self.levels: list[tuple[LevelDecision, ...]] = []
        self._planned: dict[Level, int] = {}

    def observe(self) -> Observation:
        seen = next(self._script, self._last)
        assert seen is not None, "a script needs at least one observation"
        self._last = seen
        operators = {n: replace(o, replicas=self._sizes.get(n, o.replicas)) for n, o in seen.operators.items()}
        fleet = tuple(replace(state, planned=self._planned.get(state.level, state.planned)) for state in seen.fleet)
        return replace(seen, operators=operators, fleet=fleet, ended_s=self._clock())

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        self.applied.append(decisions)
        self._sizes |= {decision.operator: decision.after for decision in decisions}
        return 0.0

    def pause(self, seconds: float) -> float:
        self.pauses.append(seconds)
        return seconds

    def discard(self) -> None:
        self.discards += 1

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        self.levels.append(decisions)
        self._planned |= {decision.level: decision.after for decision in decisions}

    def place(self, moves: tuple[Move, ...]) -> None:
        self.moves.append(moves)
