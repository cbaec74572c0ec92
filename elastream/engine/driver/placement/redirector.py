"""Redirection while the stream flows: which operators' tuples go to replicas with more room, which key groups, which keys.

Looks at the lanes of every operator with the grouping `redirection` a few times a second. While their load balance and load
ratios are in range, tuples go where the grouping's even form sends them (Dr-Stream, equation 11).
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from elastream import rules
from elastream.control import Redirected
from elastream.control.load import LevelLoad
from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.dispatch.lane_loads import LaneLoads
from elastream.engine.driver.dispatch.redirections import Redirections
from elastream.engine.driver.placement.group_mover import GroupMover
from elastream.engine.driver.placement.groups import GroupTable
from elastream.lanes.runs import cut
from elastream.lanes.state import LedgerState
from elastream.routing.key_groups import moves
from elastream.routing.redirection import redirected_groups, split_among
from elastream.topology import Graph
from elastream.topology.groupings import KEY_GROUPS

Floats = npt.NDArray[np.float64]

MEMORY_S = 2.0
"""How far back rates of key groups and keys are measured, about."""

MOST_SLICES = 64
"""Slices of a lane that are looked at to tell how what waits is shared out among its key groups."""

UNSPLIT = 0.5
"""A key is split when it alone is more than a lane's mean load, and put together again below this part of it."""

SETTLE_S = 1.0
"""After a change to an operator's key groups or keys, how long its effect is waited for."""

MOST_RECORDS = 1000


@dataclass
class _Flow:
    """One operator that is reached by key groups: what came lately. All of it fades with `MEMORY_S`."""

    arrived: Floats = field(default_factory=lambda: np.zeros(KEY_GROUPS))
    keys: dict[int, float] = field(default_factory=dict)
    """Tuples of keys that are much of what a lane serves, by their hash."""
    busy_s: dict[int, float] = field(default_factory=dict)
    """Per lane."""
    served: dict[int, float] = field(default_factory=dict)

    def fade(self, factor: float) -> None:
        self.arrived *= factor
        self.keys = {key: rows * factor for key, rows in self.keys.items() if rows * factor > 1.0}
        self.busy_s = {lane: seconds * factor for lane, seconds in self.busy_s.items()}
        self.served = {lane: tuples * factor for lane, tuples in self.served.items()}

    def add(self, lane: int, busy_s: float, tuples: int) -> None:
        """A lane has served some tuples."""
        self.busy_s[lane] = self.busy_s.get(lane, 0.0) + busy_s
        self.served[lane] = self.served.get(lane, 0.0) + tuples

    def came_of(self, key: int) -> float:
        """Tuples of a key that came, from those that were served: lanes that are behind serve fewer than come."""
        served = sum(self.served.values())
        return self.keys.get(key, 0.0) * (max(1.0, float(self.arrived.sum()) / served) if served else 1.0)

    def slowness(self, lanes: int) -> list[float]:
        """How long a tuple takes in each lane, against the mean of all; 1 where little is known."""
        times = [
            self.busy_s[lane] / self.served[lane] if self.served.get(lane, 0.0) >= 10 else math.nan
            for lane in range(lanes)
        ]
        mean = float(np.nanmean(times)) if not all(map(math.isnan, times)) else 0.0
        return [time / mean if mean and not math.isnan(time) else 1.0 for time in times]


class Redirector:
    """For the operators of a run whose grouping is `redirection`. In the tick's thread."""

    def __init__(
        self,
        graph: Graph,
        state: LedgerState,
        groups: GroupTable,
        mover: GroupMover,
        loads: LaneLoads,
        redirections: Redirections,
    ) -> None:
        self._state = state
        self._groups = groups
        self._mover = mover
        self._loads = loads
        self._redirections = redirections
        self._by_groups: dict[str, _Flow] = {}
        for operator in graph.served:
            if any(e.grouping.keyed and e.grouping.redirects for e in graph.edges_into(operator.name)):
                self._by_groups[operator.name] = _Flow()
        self.records: deque[Redirected] = deque(maxlen=MOST_RECORDS)
        self._told: dict[str, str] = {}
        """The last thing that was said of an operator: once is enough."""
        self._looked_s = -math.inf
        self._changed_s: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._by_groups or self._loads.redirectable)

    def hear(self, result: TickResult) -> None:
        """A turn's receipts."""
        if not self._by_groups:
            return
        for operator, _, piece in result.appended:
            flow = self._by_groups.get(operator)
            if flow is not None:
                for group, rows in cut(piece.runs, piece.first, piece.rows):
                    flow.arrived[group] += rows
        for receipt in result.receipts:
            flow = self._by_groups.get(receipt.operator)
            if flow is not None:
                flow.add(receipt.lane, receipt.busy_s, receipt.processed)
                for key, rows in receipt.hot:
                    flow.keys[key] = flow.keys.get(key, 0.0) + rows

    def step(self, now: float, wall_s: float) -> bool:
        """Decide anew, if it is time to; True when senders must be told of keys that are split, or are not any more."""
        if not self or now - self._looked_s < rules.REDIRECT_S:
            return False
        passed_s, self._looked_s = now - self._looked_s, now
        for operator in sorted(self._loads.redirectable):
            self._redirect_tuples(operator, wall_s)
        changed = False
        for operator, flow in self._by_groups.items():
            if math.isfinite(passed_s):
                flow.fade(math.exp(-passed_s / MEMORY_S))
            changed |= self._redirect_groups(operator, flow, now, wall_s)
        return changed

    # -- tuples

    def _redirect_tuples(self, operator: str, wall_s: float) -> None:
        if not self._loads.length(operator):
            return
        level = LevelLoad(tuple(self._loads.ratios(operator)))
        was_on = operator in self._redirections.tuples
        on = rules.out_of_range(level.lb, level.most, was_on)
        if on == was_on:
            return
        if on:
            self._redirections.tuples.add(operator)
            self._tell(
                operator,
                level,
                wall_s,
                f"{rules.why_out_of_range(level.lb, level.most)}: tuples go to the replicas with most room",
            )
        else:
            self._redirections.tuples.discard(operator)
            self._tell(operator, level, wall_s, f"lb {level.lb:.2f} is in range: tuples are dealt out evenly again")

    # -- key groups

    def _redirect_groups(self, operator: str, flow: _Flow, now: float, wall_s: float) -> bool:
        ratios = self._loads.ratios(operator)
        level, length = LevelLoad(tuple(ratios)), self._loads.length(operator)
        changed = self._unsplit(operator, flow, level, wall_s)
        settling = self._groups.is_targeted(operator) or now - self._changed_s.get(operator, -math.inf) < SETTLE_S
        if not length or settling or not rules.out_of_range(level.lb, level.most):
            return changed
        owners, size = self._state.owners[operator], len(ratios)
        if max(owners) >= size:
            # Its replicas are just being changed.
            return changed
        demand = (flow.arrived / MEMORY_S * rules.FULL_S + self._queued(operator)) / length
        wanted = redirected_groups(owners, demand.tolist(), ratios, flow.slowness(size))
        count = len(moves(owners, wanted))
        if count:
            self._changed_s[operator] = now
            self._mover.redirect(operator, wanted, now, wall_s)
            words = f"{rules.why_out_of_range(level.lb, level.most)}: {count} key group{'s go' if count > 1 else ' goes'} to replicas with more room"
            self._tell(operator, level, wall_s, words, groups=count)
            return changed
        if self._split(operator, flow, demand, size, level, wall_s):
            self._changed_s[operator] = now
            return True
        if operator not in self._redirections.mergeable:
            self._tell(
                operator,
                level,
                wall_s,
                f"{rules.why_out_of_range(level.lb, level.most)}: no key group is better elsewhere; merge= would split keys",
            )
        return changed

    def _queued(self, operator: str) -> Floats:
        """How many tuples of each group wait, told from some slices of every lane."""
        found = np.zeros(KEY_GROUPS)
        for queue in self._state.lanes_of(operator).values():
            slices = list(queue.slices)
            some = slices[:: max(1, len(slices) // MOST_SLICES)]
            rows = np.zeros(KEY_GROUPS)
            for piece in some:
                for group, count in cut(piece.runs, piece.first, piece.rows):
                    rows[group] += count
            if rows.any():
                found += rows * (len(queue) / rows.sum())
        return found

    # -- keys

    def _split(self, operator: str, flow: _Flow, demand: Floats, size: int, level: LevelLoad, wall_s: float) -> bool:
        """Deal out the tuples of the heaviest key among several lanes; False when no key is so heavy."""
        if operator not in self._redirections.mergeable or size < 2:
            return False
        total, known = float(flow.arrived.sum()), self._redirections.splits[operator]
        mean = total / size
        weights = {key: self._weight(flow, key, known) for key in flow.keys}
        heavy = [key for key, rows in weights.items() if rows > mean * max(1, len(known.get(key, ())))]
        if not heavy:
            return False
        key = max(heavy, key=lambda key: (weights[key], key))
        rows, before = weights[key], known.get(key, [])
        groups = split_among(key % KEY_GROUPS, rows, mean, self._state.owners[operator], demand.tolist(), size)
        if len(groups) <= max(1, len(before)):
            return False
        known[key] = groups
        words = f"{rules.why_out_of_range(level.lb, level.most)}: one key is {rows / total:.0%} of all tuples, and is split over {len(groups)} replicas"
        self._tell(operator, level, wall_s, words, split=len(groups))
        return True

    def _weight(self, flow: _Flow, key: int, known: dict[int, list[int]]) -> float:
        """Tuples of a key that came lately. Of one that is not split its group tells: a lane that is behind serves fewer."""
        return flow.came_of(key) if key in known else max(flow.keys[key], float(flow.arrived[key % KEY_GROUPS]))

    def _unsplit(self, operator: str, flow: _Flow, level: LevelLoad, wall_s: float) -> bool:
        """Keys that are not heavy any more, or whose groups have come together in fewer lanes."""
        known, owners = self._redirections.splits.get(operator, {}), self._state.owners[operator]
        mean = float(flow.arrived.sum()) / max(1, len(level.ratios))
        over = [key for key in known if flow.came_of(key) < UNSPLIT * mean]
        crowded = [key for key, groups in known.items() if len({owners[group] for group in groups}) < len(groups)]
        for key in {*over, *crowded}:
            del known[key]
        if over:
            self._tell(operator, level, wall_s, f"{len(over)} split keys are light again, and are put together")
        return bool(over or crowded)

    def _tell(
        self, operator: str, level: LevelLoad, wall_s: float, words: str, groups: int = 0, split: int = 0
    ) -> None:
        if groups or split or self._told.get(operator) != words.partition(":")[2]:
            self._told[operator] = words.partition(":")[2]
            self.records.append(Redirected(operator, wall_s, level.lb, words, groups, split))
