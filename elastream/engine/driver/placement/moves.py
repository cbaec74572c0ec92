"""Moves of key groups between hosts: copied while their lane is served, compared while it is frozen, then handed over.

A lane is frozen only while the last changes are learned and both hosts say what they have: milliseconds. If they do not have
the same, nothing moves, and an error is logged.
"""

import logging
from collections.abc import Sequence

from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.placement.groups import GroupMove, GroupPhase, GroupTable
from elastream.engine.driver.placement.hosts import HostId
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.engine.driver.placement.state_tasks import SentTask, StateTask, Task
from elastream.lanes.segments import LaneId

log = logging.getLogger("elastream.tick")


class GroupMoves:
    """Takes the moves in the table of key groups from phase to phase. In the driver's thread only."""

    def __init__(self, groups: GroupTable, keeper: StateKeeper, works: WorkTable) -> None:
        self._groups = groups
        self._keeper = keeper
        self._works = works

    def begin_groups(
        self, groups: Sequence[int], giver: LaneId, taker: LaneId, from_host: HostId, to_host: HostId
    ) -> None:
        """Move some of these groups, as many as a short work copies, to a lane in another host."""
        if not self._groups.gives(giver) and giver not in self._works.suspects:
            some = self._keeper.portions(giver.operator, groups)[0]
            self._begin(some, giver, taker, from_host, to_host)

    def begin_lane(self, lane: LaneId, from_host: HostId, to_host: HostId) -> None:
        """Move a lane with all of its state."""
        # A suspected lane is tried again where it is. Frozen for a move, it never would be.
        if lane not in self._works.suspects and self._keeper.prepare(lane):
            self._begin(tuple(self._groups.of_lane(lane)), lane, lane, from_host, to_host)

    def _begin(self, groups: tuple[int, ...], giver: LaneId, taker: LaneId, from_host: HostId, to_host: HostId) -> None:
        portions = self._keeper.portions(giver.operator, groups, to_host)
        copies = [StateTask(Task.COPY, giver.operator, some, to_host) for some in portions]
        self._groups.begin(GroupMove(giver.operator, groups, giver, taker, from_host, to_host, to_ask=copies))

    def done(self, sent: SentTask) -> None:
        """A task's receipt has come. A refused one says nothing: its move ends with the next `advance`."""
        if sent.refused:
            return
        for move in self._groups.moves:
            if any(task is sent.task for task in move.open):
                move.open = [task for task in move.open if task is not sent.task]
                if move.phase is GroupPhase.COMPARING:
                    side = move.before if sent.task.kind is Task.MEASURE else move.after
                    side.update({facts.group: facts for facts in sent.facts})

    def advance(self, now: float) -> list[GroupMove]:
        """Take every move as far as it can go; gives those that were compared, which are over."""
        over = []
        for move in self._groups.moves:
            if not all(map(self._keeper.is_open, move.open)):
                # A task was dropped or refused, because groups or hosts are not where they were. If it is still wanted, it begins anew.
                self._groups.end(move)
                continue
            self._ask(move)
            if move.to_ask or move.open:
                continue
            if move.phase is GroupPhase.COPYING:
                self._groups.enter(move, GroupPhase.FREEZING)
            if move.phase is GroupPhase.FREEZING and self._works.is_free(move.giver):
                self._groups.enter(move, GroupPhase.COMPARING)
                move.frozen_s = now
                move.to_ask = [
                    StateTask(Task.COPY, move.operator, move.groups, move.to_host, measure=True),
                    StateTask(Task.MEASURE, move.operator, move.groups, move.from_host),
                ]
                self._ask(move)
            elif move.phase is GroupPhase.COMPARING:
                move.waited_s = now - move.frozen_s
                self._groups.end(move)
                over.append(move)
                if not move.agreed:
                    log.error(
                        "operator %r: key groups %s are not the same in hosts %d and %d; they stay where they are",
                        move.operator,
                        [group for group in move.groups if move.before.get(group) != move.after.get(group)],
                        move.from_host.number,
                        move.to_host.number,
                    )
        return over

    def _ask(self, move: GroupMove) -> None:
        asked = [task for task in move.to_ask if self._keeper.ask(task)]
        move.open += asked
        move.to_ask = [task for task in move.to_ask if not any(task is other for other in asked)]
