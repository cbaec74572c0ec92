"""What steps a simulation forward: an interface that the vectorised and the tuple-by-tuple simulation both keep."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elastream.simulator.kernel import source_due_by
from elastream.simulator.model import Model
from elastream.simulator.spark_ticks import SparkTicks, advance_ticks
from elastream.simulator.state import BUDGET_S, NOW, OVER, Limits, Moving
from elastream.simulator.storm_steps import StormSteps, advance_steps

System = SparkTicks | StormSteps


@dataclass(frozen=True)
class Failure:
    """A node that is gone for a while."""

    node: int
    at_s: float
    for_s: float


class Fidelity:
    """Steps over all lanes at once."""

    def __init__(
        self,
        model: Model,
        system: System,
        limits: Limits,
        moving: Moving,
        *,
        seed: int,
        restart_s: float,
        failures: Sequence[Failure] = (),
    ) -> None:
        self.model = model
        self.system = system
        self.limits = limits
        self.moving = moving
        self.costs = np.zeros(len(model.operators))
        """What a tuple adds to the load of a lane, per operator."""
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._restart_s = restart_s
        turns = [(failure.at_s, failure.node, False) for failure in failures]
        turns += [(failure.at_s + failure.for_s, failure.node, True) for failure in failures]
        self._turns = sorted(turns)
        if isinstance(system, SparkTicks):
            moving.clock[BUDGET_S] = system.budget_s

    @property
    def over(self) -> bool:
        return bool(self.moving.clock[OVER])

    def advance(self, until_s: float) -> None:
        """To the first moment between two steps at `until_s` or after it."""
        while self._turns and self._turns[0][0] <= until_s and not self.over:
            at_s, node, up = self._turns.pop(0)
            self.step(at_s)
            self._turn(node, up)
        self.step(until_s)

    def step(self, until_s: float) -> None:
        fixed, limits, moving = self.model.fixed, self.limits, self.moving
        if isinstance(self.system, SparkTicks):
            advance_ticks(fixed, self.system, limits, moving, self.costs, until_s, self._random)
        else:
            advance_steps(fixed, self.system, limits, moving, self.costs, until_s, self._random)

    def usable(self, service_s: float, overhead_s: float | None) -> float:
        """The share of its time that a replica with enough to do serves."""
        if not isinstance(self.system, SparkTicks):
            return 1.0
        budget_s = self.system.budget_s
        serving_s = max(1, int(budget_s / service_s)) * service_s if service_s else budget_s
        return serving_s / (serving_s + (self.system.base_s if overhead_s is None else overhead_s))

    def unread(self, source: int) -> int:
        """Tuples that are due and not read yet."""
        due = source_due_by(self.model.fixed, source, float(self.moving.clock[NOW]))
        return max(0, due - int(self.moving.next_of[source]))

    def restart(self) -> None:
        """Everything stands still, and what is queued is lost."""
        self.drop(np.ones(len(self.moving.queued), np.bool_))
        self.moving.clock[NOW] += self._restart_s

    def drop(self, lanes: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        self.moving.dropped[lanes] += self.moving.queued[lanes]
        self.moving.queued[lanes] = 0

    def _turn(self, node: int, up: bool) -> None:
        """A node goes or comes back. Spark runs its tasks elsewhere, with fewer cores; Storm's threads there are gone."""
        self.moving.node_up[node] = up
        if isinstance(self.system, SparkTicks):
            alive = self.model.fixed.node_cores[self.moving.node_up].sum()
            self.system = self.system._replace(cores=max(1, int(alive)))
        elif not up:
            self.drop(self.model.fixed.node == node)
