"""Key groups that change hands in a simulation, and the state that goes with them: copied, moved, recovered.

As in the engine (`engine/driver/placement/group_mover.py`, `transfers.py`): a state is copied while its lane is served, portion by portion;
the lane stands still only while the last changes are learned and both sides are compared.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from elastream import rules
from elastream.control import StateMoved
from elastream.routing.key_groups import Owners, moves, rebalanced
from elastream.simulator import ring
from elastream.simulator.key_groups import KeyGroups, StateCosts
from elastream.simulator.model import Model, merges
from elastream.simulator.popularity import Popularity
from elastream.simulator.state import NOW, Floats, Moving

COMPARED = 0.25
"""Counting and adding up what a host has of a key takes this part of learning it."""


class Flow(Protocol):
    """The simulation in which groups move."""

    model: Model
    moving: Moving

    @property
    def message_s(self) -> float:
        """How long it takes to ask a host for something and to hear of it."""
        ...

    def later(self, at_s: float, act: Callable[[], None]) -> None: ...

    def busy_until(self, lane: int) -> float:
        """When the work that a lane has under way is over; now, when it has none."""
        ...

    def move_waiting(self, giver: int, taker: int, share: float) -> None:
        """This part of what waits in a lane waits in another one from now on."""
        ...

    def settle(self, lane: int, node: int) -> None:
        """A lane lives on another machine from now on."""
        ...

    def spread(self) -> None:
        """Lanes that nobody gave a home follow when a machine has come, as far as there are fewer on it."""
        ...


class GroupMoves:
    """Of all operators of a run that are reached by key groups."""

    def __init__(self, flow: Flow, costs: StateCosts) -> None:
        self._flow = flow
        self._costs = costs
        self.operators: dict[int, KeyGroups] = {}
        for place, operator in enumerate(flow.model.operators):
            grouping = flow.model.graph.edges_into(operator.name)[0].grouping
            if grouping.keyed:
                first, end = (int(flow.model.fixed.first[place + n]) for n in (0, 1))
                size, keyed = int(flow.moving.asked[place]), operator.keyed is not None
                self.operators[place] = KeyGroups.begin(
                    operator.name,
                    place,
                    first,
                    end - first,
                    size,
                    keyed,
                    grouping.redirects and not merges(operator),
                    flow.model.popularity,
                )
                self._weigh(self.operators[place])
        self._receipts: list[StateMoved] = []
        self._ended = 0
        for its in self.operators.values():
            self._ring(its)

    @property
    def _now_s(self) -> float:
        return float(self._flow.moving.clock[NOW])

    def told(self) -> tuple[StateMoved, ...]:
        """Changes that have ended since the last time this was asked."""
        found, self._receipts = tuple(self._receipts), []
        return found

    def heat(self, popularity: Popularity) -> None:
        """Keys are as popular as this from now on."""
        for its in self.operators.values():
            its.popularity = popularity
            self._weigh(its)

    # -- changes of replicas

    def resize(self, place: int) -> None:
        """The number of replicas, or the machine of one that owns nothing, has changed."""
        its = self.operators.get(place)
        if its is not None:
            size = int(self._flow.moving.asked[place])
            wanted = rebalanced(its.owners, size, partial(self._beside, its) if its.keyed else _nowhere)
            self.want(its, wanted)

    def settle(self) -> None:
        """All groups are where they shall be, at once."""
        for its in self.operators.values():
            self._cancel(its)
            its.owners = rebalanced(its.owners, int(self._flow.moving.asked[its.place]))
            its.wanted, its.receipt = list(its.owners), None
            self._weigh(its)
            self._ring(its)

    def want(self, its: KeyGroups, wanted: Owners) -> None:
        """These shall own the groups."""
        self._cancel(its)
        its.wanted = wanted
        if its.keyed and moves(its.owners, wanted):
            replicas = int(self._flow.moving.asked[its.place])
            its.receipt = its.receipt or StateMoved(its.name, replicas, self._now_s)
            its.receipt.replicas = replicas
        self._send(its)

    def _cancel(self, its: KeyGroups) -> None:
        its.generation += 1
        its.giving.clear()
        its.on_their_way.clear()

    def _send(self, its: KeyGroups) -> None:
        """Groups whose state is where it is needed move now; of the others, a portion per lane that gives some sets off."""
        keys = self._keys(its)
        at_once: dict[int, int] = {}
        sent: dict[tuple[int, int], list[int]] = {}
        for group, taker in moves(its.owners, its.wanted):
            giver = its.owners[group]
            if group in its.on_their_way:
                continue
            if not its.keyed or not keys[group] or self._beside(its, giver, taker):
                at_once[group] = taker
            else:
                sent.setdefault((giver, taker), []).append(group)
        if at_once:
            if its.receipt is not None:
                its.receipt.groups += len(at_once)
            self._hand_over(its, at_once)
        for (giver, taker), groups in sent.items():
            if giver not in its.giving:
                portion = _portion(groups, keys)
                its.on_their_way.update(portion)
                self._transfer(its, giver, portion, partial(self._taken, its, taker))
        if not sent and not its.on_their_way and its.receipt is not None:
            self._end(its.receipt)
            its.receipt = None
        for lane in its.homes:
            if lane not in its.giving:
                self._transfer(its, lane, its.groups_of(lane), partial(self._arrived, its, lane, self._now_s))

    def _transfer(
        self, its: KeyGroups, giver: int, groups: list[int], done: Callable[[list[int], float, float], None]
    ) -> None:
        """Copy while the lane is served; `done` gets the groups, the keys of them, and how long the lane stood still."""
        its.giving.add(giver)
        keys, began_s, generation = float(self._keys(its)[groups].sum()), self._now_s, its.generation

        def stop() -> None:
            if its.generation != generation:
                return
            free_s = self._flow.busy_until(its.first + giver)
            changed = self._changed(its, groups, free_s - began_s)
            stands_s = 2 * self._flow.message_s + self._costs.copy_s(changed + COMPARED * keys)
            ready_s = self._flow.moving.ready_s
            ready_s[its.first + giver] = max(ready_s[its.first + giver], free_s + stands_s)
            self._flow.later(free_s + stands_s, partial(agree, stands_s))

        def agree(stood_s: float) -> None:
            if its.generation == generation:
                its.giving.discard(giver)
                done(groups, keys, stood_s)

        self._flow.later(began_s + self._flow.message_s + self._costs.copy_s(keys), stop)

    def _taken(self, its: KeyGroups, taker: int, groups: list[int], keys: float, stood_s: float) -> None:
        its.on_their_way.difference_update(groups)
        if its.receipt is not None:
            its.receipt.groups += len(groups)
            _add(its.receipt, len(groups), keys, keys * self._costs.bytes_per_key, stood_s)
        self._hand_over(its, dict.fromkeys(groups, taker))
        self._send(its)

    def _hand_over(self, its: KeyGroups, taken: dict[int, int]) -> None:
        """What waits of these groups goes with them."""
        by_pair: dict[tuple[int, int], list[int]] = {}
        for group, taker in taken.items():
            by_pair.setdefault((its.owners[group], taker), []).append(group)
        for (giver, taker), groups in by_pair.items():
            whole = its.share(its.groups_of(giver))
            if whole:
                self._flow.move_waiting(its.first + giver, its.first + taker, min(1.0, its.share(groups) / whole))
            for group in groups:
                its.owners[group] = taker
        self._weigh(its)
        self._ring(its, {taker for _, taker in by_pair})

    def _end(self, receipt: StateMoved) -> None:
        receipt.took_ms = (self._now_s - receipt.began_s) * 1e3
        self._ended += 1
        receipt.number = self._ended
        self._receipts.append(receipt)

    # -- lanes that move, with all they remember

    def move_lane(self, place: int, lane: int, node: int) -> None:
        """A lane of an operator goes to live on another machine. One that remembers nothing does so at once."""
        its = self.operators.get(place)
        if its is None or not its.keyed:
            self._flow.settle(int(self._flow.model.fixed.first[place]) + lane, node)
        elif self._keys(its)[its.groups_of(lane)].sum():
            its.homes[lane] = node
            self._send(its)
        else:
            its.homes.pop(lane, None)
            self._flow.settle(its.first + lane, node)
            if moves(its.owners, its.wanted):
                # Who is near has changed.
                self.resize(place)
            self._ring(its)

    def _arrived(
        self, its: KeyGroups, lane: int, began_s: float, groups: list[int], keys: float, stood_s: float
    ) -> None:
        node = its.homes.pop(lane, None)
        if node is None:
            # The machine to which it went is gone.
            return
        receipt = StateMoved(its.name, int(self._flow.moving.asked[its.place]), began_s)
        _add(receipt, len(groups), keys, keys * self._costs.bytes_per_key, stood_s)
        self._end(receipt)
        self._flow.settle(its.first + lane, node)
        self._ring(its, {lane})
        self._send(its)
        self._flow.spread()

    # -- machines that fail

    def lost(self, lanes: Sequence[int]) -> dict[int, tuple[int | None, float]]:
        """What must be recovered of lanes whose process is gone: per lane, the machine with a copy and the seconds that it takes."""
        now_s, found = self._now_s, dict[int, tuple[int | None, float]]()
        for its in self.operators.values():
            mine = [lane - its.first for lane in lanes if its.first <= lane < its.first + its.pool]
            if not mine or not its.keyed:
                continue
            self._cancel(its)
            keys = self._keys(its)
            for lane in mine:
                groups = its.groups_of(lane)
                copy = ring.whole_copy(its, lane, self._flow.moving.node_up, now_s)
                if copy is not None:
                    changed = self._changed(its, groups, (now_s - copy.whole_s) % self._costs.ring_s)
                    found[its.first + lane] = copy.node, self._flow.message_s + self._costs.copy_s(changed)
                else:
                    wait_s = self._flow.message_s + self._costs.load_s(float(keys[groups].sum()))
                    found[its.first + lane] = None, wait_s
        return found

    def settled(self, lanes: Sequence[int]) -> None:
        """Lanes that were recovered live elsewhere now: what was on its way sets off again."""
        for its in self.operators.values():
            its.homes = {lane: node for lane, node in its.homes.items() if self._flow.moving.node_up[node]}
            if its.keyed and any(its.first <= lane < its.first + its.pool for lane in lanes):
                self._send(its)
                self._ring(its)

    def copying_cores(self, seconds: float, processed: Sequence[int]) -> float:
        """Cores that copies took over an interval in which each operator served so many tuples."""
        return sum(
            ring.copying_cores(its, self._costs, processed[its.place] / seconds)
            for its in self.operators.values()
            if its.keyed and seconds
        )

    # -- how things are

    def _ring(self, its: KeyGroups, changed: Collection[int] = ()) -> None:
        if its.keyed and self._costs.ring_s:
            nodes = {lane: self._node(its, lane) for lane in sorted(set(its.owners))}
            ring.follow(its, self._costs, nodes, self._keys(its), self._now_s, changed)

    def _beside(self, its: KeyGroups, giver: int, taker: int) -> bool:
        return self._node(its, giver) == self._node(its, taker)

    def _node(self, its: KeyGroups, lane: int) -> int:
        return int(self._flow.moving.node[its.first + lane])

    def _served(self, its: KeyGroups) -> int:
        return int(self._flow.moving.processed[its.first : its.first + its.pool].sum())

    def _keys(self, its: KeyGroups) -> Floats:
        """Per group, the keys that something is remembered of."""
        if not its.keyed:
            return np.zeros(len(its.owners))
        return np.rint(its.popularity.distinct(self._served(its)))

    def _changed(self, its: KeyGroups, groups: list[int], seconds: float) -> float:
        """Keys of these groups that change in so many seconds, at the rate of the run so far."""
        per_s = self._served(its) / max(self._now_s, 1e-9)
        return float(its.popularity.distinct(per_s * max(0.0, seconds))[groups].sum())

    def _weigh(self, its: KeyGroups) -> None:
        self._flow.moving.weight[its.first : its.first + its.pool] = its.weights


def _nowhere(giver: int, taker: int) -> bool:
    return False


def _portion(groups: list[int], keys: Floats) -> list[int]:
    """So many groups together that learning them takes no longer than a short work; as in the engine."""
    some: list[int] = []
    for group in groups:
        if some and keys[some].sum() + keys[group] > rules.PORTION_KEYS:
            break
        some.append(group)
    return some


def _add(receipt: StateMoved, groups: int, keys: float, size: float, stood_s: float) -> None:
    receipt.between_hosts += groups
    receipt.keys += round(keys)
    receipt.bytes += round(size)
    receipt.waited_ms = max(receipt.waited_ms, stood_s * 1e3)
