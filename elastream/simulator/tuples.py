"""Lanes that hold every tuple: what the tuple-by-tuple simulations share. Slow and exact, the oracle of the fast ones."""

import math
from collections import deque
from collections.abc import Sequence
from itertools import islice

import numpy as np

from elastream.report.latency import bucket_of
from elastream.simulator.containers import Containers
from elastream.simulator.drawing import lane_at, look_at_queues
from elastream.simulator.due import due_s, source_due_by
from elastream.simulator.fidelity import Failure, Fidelity, System
from elastream.simulator.kernel import over_edge
from elastream.simulator.key_groups import StateCosts
from elastream.simulator.model import Model
from elastream.simulator.redirecting import is_uneven
from elastream.simulator.state import (
    BUCKETS,
    BUSY,
    DRAWN,
    EVERY,
    LENGTH,
    LONGEST_WAIT_S,
    LOOKS_S,
    MERGED,
    NOW,
    REDIRECTED,
    SHORTEST,
    WAIT_SUM_S,
    WEIGHTED,
    Flags,
    Ints,
    Limits,
    Moving,
)


class Tuples(Fidelity):
    """A tuple is the second at which it was due. The counters are those of the fast simulation, so the plant is the same."""

    def __init__(
        self,
        model: Model,
        system: System,
        limits: Limits,
        moving: Moving,
        containers: Containers,
        *,
        seed: int,
        failures: Sequence[Failure] = (),
        state: StateCosts | None = None,
    ) -> None:
        self.lanes: list[deque[float]] = [deque() for _ in range(len(moving.queued))]
        self._turn_of = [0] * len(model.operators)
        self._ends: list[tuple[float, int, int]] = []
        """Of a system without ticks: when which service of which operator and lane ends, a heap."""
        self._serving: set[int] = set()
        self._wakes: list[tuple[float, int]] = []
        """When which lane is ready that was not when there was something for it, a heap."""
        super().__init__(
            model,
            system,
            limits,
            moving,
            containers,
            seed=seed,
            failures=failures,
            state=state,
        )

    def next_due(self, source: int) -> float:
        """When the source's next tuple is due; infinity when it has no more."""
        fixed = self.model.fixed
        a, b = int(fixed.due_first[source]), int(fixed.due_first[source + 1])
        number = int(self.moving.next_of[source])
        if number >= int(fixed.due_counts[b - 1] + 1e-9):
            return math.inf
        return float(due_s(fixed.due_ends[a:b], fixed.due_counts[a:b], number + 1.0))

    def waiting(self, lane: int, rows: int) -> list[float]:
        """The due times of the first tuples of a lane."""
        return list(islice(self.lanes[lane], rows))

    def take(self, lane: int, rows: int) -> None:
        for _ in range(rows):
            self.lanes[lane].popleft()
        self.moving.queued[lane] -= rows

    def read(self, source: int, until_s: float, most: int) -> list[float]:
        """The due times of the next tuples of a source that are due."""
        fixed = self.model.fixed
        a, b = int(fixed.due_first[source]), int(fixed.due_first[source + 1])
        number = int(self.moving.next_of[source])
        rows = min(most, source_due_by(fixed, source, until_s) - number)
        return [float(due_s(fixed.due_ends[a:b], fixed.due_counts[a:b], number + n + 1.0)) for n in range(rows)]

    def deal(self, head: int, tuples: list[float], at_s: float) -> None:
        """Deal the output of one work out among the lanes behind it, from a random one on."""
        fixed = self.model.fixed
        for edge in range(int(fixed.edge_first[head]), int(fixed.edge_first[head + 1])):
            target = int(fixed.edge_to[edge])
            if target >= 0:
                self._turn_of[target] = int(self._random.random() * self.moving.active[target])
        self.finished_s = at_s
        for due in tuples:
            self.hand_on(head, due)

    def hand_on(self, head: int, due: float) -> list[int]:
        """One tuple leaves a head. Gives the lanes that got it, or a copy of it."""
        fixed, moving = self.model.fixed, self.moving
        out, left, given = 0, 1, list[int]()
        splits, end = bool(fixed.splits[head]), int(fixed.edge_first[head + 1])
        for edge in range(int(fixed.edge_first[head]), end):
            whole = over_edge(moving.carry, edge, float(fixed.edge_share[edge]), left, splits, edge == end - 1)
            left -= whole
            target = int(fixed.edge_to[edge])
            for _ in range(whole):
                if target < 0:
                    out += 1
                    moving.over_edge[edge] += 1
                    self._finish(head, due)
                    continue
                lanes = self._choose(target)
                out += len(lanes)
                moving.over_edge[edge] += len(lanes)
                given += [lane for lane in lanes if self._append(lane, due)]
        if out > 1:
            moving.entered[head] += out - 1
        elif not out:
            self._finish(head, due)
        return given

    def _append(self, lane: int, due: float) -> bool:
        self.moving.received[lane] += 1
        if self.limits.q_size and self.limits.drops and self.moving.queued[lane] >= self.limits.q_size:
            self.moving.dropped[lane] += 1
            return False
        self.lanes[lane].append(due)
        self.moving.queued[lane] += 1
        return True

    def _choose(self, target: int) -> list[int]:
        """The lane of the next tuple, one at a time."""
        fixed, moving = self.model.fixed, self.moving
        first, active = int(fixed.first[target]), int(moving.active[target])
        kind = int(fixed.routing[target])
        if kind == EVERY:
            return list(range(first, first + active))
        if kind == DRAWN:
            look_at_queues(fixed, moving, target)
            weights = moving.weight[first : int(fixed.first[target + 1])]
            return [first + int(lane_at(weights, active, self._random.random()))]
        redirect, queued = moving.redirect[target], moving.queued[first : first + active]
        one_by_one = kind == MERGED and redirect[LOOKS_S] == 0.0
        if kind in (REDIRECTED, MERGED) and is_uneven(redirect, queued, moving.clock[NOW], one_by_one):
            return [first + self._roomy(queued, float(redirect[LENGTH]))]
        if kind in (WEIGHTED, MERGED):
            ends = np.cumsum(moving.weight[first : int(fixed.first[target + 1])])
            lane = first + int(np.searchsorted(ends, self._random.random() * ends[-1], side="right"))
            if one_by_one and moving.queued[lane] >= redirect[LENGTH]:
                lane = first + self._roomy(queued, float(redirect[LENGTH]))
            return [lane]
        if kind == SHORTEST:
            return [first + int(np.argmin(moving.queued[first : first + active]))]
        if kind == BUSY:
            least = int(np.argmin(moving.busy_before[first : first + active]))
            if moving.busy_before[first + least] < 1.0:
                moving.busy_before[first + least] += self.costs[target]
                return [first + least]
        self._turn_of[target] += 1
        return [first + self._turn_of[target] % active]

    def _roomy(self, queued: Ints, length: float) -> int:
        """An empty lane, or any with room by chance (Dr-Stream, equation 12); when none has room, the least full."""
        empty = np.flatnonzero(queued == 0)
        if len(empty):
            return int(empty[int(self._random.random() * len(empty))])
        ends = np.cumsum(np.maximum(0.0, length - queued))
        if not ends[-1]:
            return int(np.argmin(queued))
        return int(np.searchsorted(ends, self._random.random() * ends[-1], side="right"))

    def move_waiting(self, giver: int, taker: int, share: float) -> None:
        """One of so many stays or goes; those of the work under way stay."""
        taken = self._under_way(giver)
        stay = deque(islice(self.lanes[giver], taken))
        for place, due in enumerate(islice(self.lanes[giver], taken, None)):
            goes = round((place + 1) * share) > round(place * share)
            (self.lanes[taker] if goes else stay).append(due)
        moved = len(self.lanes[giver]) - len(stay)
        self.lanes[giver] = stay
        self.moving.queued[giver] -= moved
        self.moving.queued[taker] += moved
        self.changed()

    def _under_way(self, lane: int) -> int:
        """Tuples in front of a lane that are being served."""
        raise NotImplementedError

    def service_s(self, operator: int, lane: int) -> float:
        """How long one tuple takes, by a lognormal distribution."""
        fixed = self.model.fixed
        replicas = float(self.moving.active[operator])
        each_s = float(fixed.service_s[operator]) * (1.0 + float(fixed.bend[operator]) * (replicas - 1))
        mean_s = max(
            each_s / float(fixed.node_speed[self.moving.node[lane]]), float(fixed.limit_s[operator]) * replicas
        )
        spread = float(fixed.spread[operator])
        if not spread:
            return mean_s
        sigma2 = math.log1p(spread**2)
        return mean_s * math.exp(math.sqrt(sigma2) * self._random.standard_normal() - sigma2 / 2)

    def is_late(self, due: float, now_s: float) -> bool:
        return bool(self.limits.t_out_s) and now_s - due > self.limits.t_out_s

    def drop(self, lanes: Flags) -> None:
        super().drop(lanes)
        for lane in np.flatnonzero(lanes):
            self.lanes[lane].clear()

    def _finish(self, head: int, due: float) -> None:
        self.moving.finished[head] += 1
        if not self.limits.first_acks:
            self.note(due)

    def note(self, due: float) -> None:
        """The latency of a tuple that is acknowledged now."""
        waited = max(0.0, self.finished_s - due)
        self.moving.waits[min(BUCKETS - 1, bucket_of(waited))] += 1
        self.moving.clock[WAIT_SUM_S] += waited
        self.moving.clock[LONGEST_WAIT_S] = max(self.moving.clock[LONGEST_WAIT_S], waited)

    finished_s = 0.0
    """When what leaves now counts as finished."""
