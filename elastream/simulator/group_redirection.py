"""Redirection of key groups in a simulation: when the load of an operator's lanes is out of range, groups go to those with room."""

import numpy as np

from elastream import rules
from elastream.control import Redirected
from elastream.routing.key_groups import moves
from elastream.routing.redirection import redirected_groups
from elastream.rules import load_balance
from elastream.simulator.group_moves import Flow, GroupMoves
from elastream.simulator.key_groups import KeyGroups
from elastream.simulator.state import LENGTH, NOW, Floats, Ints

BLENDS = 0.3
"""How much the newest look counts in the tuples per second of an operator."""


class GroupRedirection:
    """Looks at all operators with the grouping `redirection` and columns, a few times per second."""

    def __init__(self, flow: Flow, groups: GroupMoves) -> None:
        self._flow = flow
        self._groups = groups
        self._told: list[Redirected] = []
        if any(its.by_load for its in groups.operators.values()):
            flow.later(rules.REDIRECT_S, self._look)

    def told(self) -> tuple[Redirected, ...]:
        """Redirections since the last time this was asked."""
        found, self._told = tuple(self._told), []
        return found

    def _look(self) -> None:
        now_s = float(self._flow.moving.clock[NOW])
        self._flow.later(now_s + rules.REDIRECT_S, self._look)
        for its in self._groups.operators.values():
            if its.by_load:
                self._count(its)
                if not moves(its.owners, its.wanted) and not its.giving:
                    self._redirect(its, now_s)

    def _count(self, its: KeyGroups) -> None:
        received = int(self._flow.moving.received[its.first : its.first + its.pool].sum())
        its.per_s += BLENDS * ((received - its.received) / rules.REDIRECT_S - its.per_s)
        its.received = received

    def _redirect(self, its: KeyGroups, now_s: float) -> None:
        moving = self._flow.moving
        size, length = int(moving.asked[its.place]), float(moving.redirect[its.place, LENGTH])
        if size < 2 or not length:
            return
        queued = moving.queued[its.first : its.first + size]
        ratios = (queued / length).tolist()
        lb, most = load_balance(ratios), max(ratios)
        if not rules.out_of_range(lb, most):
            return
        speed = self._flow.model.fixed.node_speed[moving.node[its.first : its.first + size]]
        demand = self._demand(its, queued, length)
        wanted = redirected_groups(its.owners, demand.tolist(), ratios, (speed.mean() / speed).tolist())
        going = len(moves(its.owners, wanted))
        if going:
            reason = f"{rules.why_out_of_range(lb, most)}: {going} key groups go to replicas with more room"
            self._told.append(Redirected(its.name, now_s, lb, reason, groups=going))
            self._groups.want(its, wanted)

    def _demand(self, its: KeyGroups, queued: Ints, length: float) -> Floats:
        """Per group, the part of a queue that is filled by what waits of it and by what will come in an interval."""
        shares, owners = its.popularity.of_groups, np.asarray(its.owners)
        of_lane = np.maximum(its.weights, 1e-12)[owners]
        demand: Floats = (its.per_s * rules.FULL_S * shares + queued[owners] * shares / of_lane) / length
        return demand
