"""Ownership of key groups: which groups change hands when replicas change or load is uneven, and in which tick.

A group changes hands between two works of its lane. Its queued tuples move along, so they stay in order. Nothing waits for
that, because a lane has one work at a time. Where an operator has state, and the new lane lives in another host, the state is
moved first (`moves.py`).
"""

from collections import deque

from elastream.control import StateMoved
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.placement.groups import GroupMove, GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostId
from elastream.engine.driver.placement.moves import GroupMoves
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.routing.key_groups import Owners, rebalanced

MAX_RECEIPTS = 1000
"""The newest are kept."""

NewOwners = dict[str, dict[int, int]]
"""Per operator, the groups that change hands, each with its new lane."""


class GroupMover:
    """For the operators of a run that are reached by keys. In the driver's thread only."""

    def __init__(
        self, state: LedgerState, homes: LaneHomes, groups: GroupTable, moves: GroupMoves, works: WorkTable
    ) -> None:
        self._state = state
        self._homes = homes
        self._groups = groups
        self._moves = moves
        self._works = works
        self._open: dict[str, StateMoved] = {}
        """Receipts of changes that go on."""
        self.receipts: deque[StateMoved] = deque(maxlen=MAX_RECEIPTS)
        """Receipts of changes that are over, of stateful operators."""
        self._ended = 0

    def follow(self, operator: str, now: float, wall_s: float) -> None:
        """Spread the groups of an operator evenly over its replicas, whose number may have changed."""
        owners, size = self._state.owners.get(operator), self._state.sizes[operator]
        if owners is None:
            return
        if operator not in self._groups.stateful:
            self._groups.want(operator, rebalanced(owners, size))
            return
        # Groups that were on their way are where they were, and find another way from there.
        self._groups.cancel(operator)
        homes = [self._homes.settled(LaneId(operator, lane)) for lane in range(max(size, max(owners) + 1))]
        self._want(operator, rebalanced(owners, size, lambda giver, taker: homes[giver] is homes[taker]), now, wall_s)

    def redirect(self, operator: str, owners: Owners, now: float, wall_s: float) -> None:
        """Groups of an operator shall be owned so, because of load."""
        if operator in self._groups.stateful:
            self._want(operator, owners, now, wall_s)
        else:
            self._groups.want(operator, owners)

    def step(self, now: float) -> NewOwners:
        """The groups that change hands now."""
        moved: NewOwners = {}
        for move in self._moves.advance(now):
            self._hand_over(move, moved)
        for operator in self._groups.targeted():
            owners = self._state.owners[operator]
            left = [
                (group, lane) for group, lane in self._groups.to_move(operator) if group not in moved.get(operator, {})
            ]
            if operator in self._groups.stateful:
                left = self._move_states(operator, left)
            free = {group: lane for group, lane in left if self._works.is_free(LaneId(operator, owners[group]))}
            if free:
                moved.setdefault(operator, {}).update(free)
            if operator in self._open:
                self._open[operator].groups += len(free)
        return moved

    def applied(self, now: float) -> None:
        """The groups of the last step have changed hands: end the receipts of operators that are done."""
        for operator in self._groups.all_reached():
            receipt = self._open.pop(operator, None)
            if receipt is not None:
                receipt.took_ms += now * 1e3
                if receipt.groups or receipt.problem:
                    self._ended += 1
                    receipt.number = self._ended
                    self.receipts.append(receipt)

    def _want(self, operator: str, owners: Owners, now: float, wall_s: float) -> None:
        self._groups.want(operator, owners)
        if self._groups.to_move(operator):
            size = self._state.sizes[operator]
            self._open.setdefault(operator, StateMoved(operator, size, wall_s, took_ms=-now * 1e3)).replicas = size

    def _move_states(self, operator: str, left: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Of the groups that shall move, those whose state is where it is needed; moves of the others begin."""
        owners, ready = self._state.owners[operator], []
        elsewhere: dict[tuple[int, int, HostId, HostId], list[int]] = {}
        for group, lane in left:
            place, home = self._groups(operator, group), self._homes.settled(LaneId(operator, lane))
            if place.move is not None or home is None:
                continue
            if place.primary is None or place.primary == home.identity:
                ready.append((group, lane))
            else:
                elsewhere.setdefault((owners[group], lane, place.primary, home.identity), []).append(group)
        for (giver, taker, from_host, to_host), groups in elsewhere.items():
            self._moves.begin_groups(groups, LaneId(operator, giver), LaneId(operator, taker), from_host, to_host)
        return ready

    def _hand_over(self, move: GroupMove, moved: NewOwners) -> None:
        operator = move.operator
        receipt = self._open.get(operator)
        if receipt is not None and not move.moves_lane:
            _add(receipt, move)
        if not move.agreed:
            self._groups.keep(operator, move.groups)
            return
        self._groups.hand_over(move)
        if move.moves_lane:
            self._homes.move(move.giver, move.to_host.number)
        else:
            moved.setdefault(operator, {}).update(dict.fromkeys(move.groups, move.taker.lane))
            if receipt is not None:
                receipt.groups += len(move.groups)


def _add(receipt: StateMoved, move: GroupMove) -> None:
    receipt.between_hosts += len(move.groups)
    receipt.waited_ms = max(receipt.waited_ms, move.waited_s * 1e3)
    for facts in move.before.values():
        receipt.keys += facts.keys
        receipt.bytes += facts.size
        receipt.checksum_before += facts.checksum
    receipt.checksum_after += sum(facts.checksum for facts in move.after.values())
    if not move.agreed:
        receipt.problem = "what the new host has learned is not what the old one has; the groups stay where they were"
