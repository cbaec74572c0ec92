"""Transfers of states between hosts: copied while their lane is served, compared while it stands still, then handed over.

A lane stands still only while the last changes are learned and both hosts say what they have: milliseconds. When they do not
have the same, nothing moves, and that is told.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from elastream.engine.messages import GroupFacts
from elastream.engine.tick.roster import HostId
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.state_tasks import SentTask, StateTask, Task
from elastream.lanes.segments import LaneId

log = logging.getLogger("elastream.tick")


class Step(Enum):
    """How far a transfer is."""

    COPYING = 1
    STOPPING = 2
    COMPARING = 3
    AGREED = 4
    REFUSED = 5


@dataclass
class Transfer:
    """Some groups of a lane go to another host: to a lane that lives there, or the lane itself moves."""

    operator: str
    groups: tuple[int, ...]
    giver: LaneId
    taker: LaneId
    from_host: HostId
    to_host: HostId
    step: Step = Step.COPYING
    waiting: list[StateTask] = field(default_factory=list)
    """Tasks that were not asked for yet, because somebody else has the same done."""
    open: list[StateTask] = field(default_factory=list)
    """Tasks that are asked for and not done."""
    before: dict[int, GroupFacts] = field(default_factory=dict)
    after: dict[int, GroupFacts] = field(default_factory=dict)
    stopped_s: float = 0.0
    waited_s: float = 0.0


class Transfers:
    """Those under way. In the tick's thread."""

    def __init__(self, keeper: StateKeeper, is_free: Callable[[LaneId], bool]) -> None:
        self._keeper = keeper
        self._is_free = is_free
        self._under_way: list[Transfer] = []

    def is_moving(self, operator: str, group: int) -> bool:
        return any(t.operator == operator and group in t.groups for t in self._under_way)

    def concerns(self, host: int) -> bool:
        """True while something is transferred from or to a host."""
        return any(host in (t.from_host.number, t.to_host.number) for t in self._under_way)

    def gives(self, lane: LaneId) -> bool:
        """True while something of this lane is being transferred."""
        return any(transfer.giver == lane for transfer in self._under_way)

    def begin(self, groups: tuple[int, ...], giver: LaneId, taker: LaneId, from_host: HostId, to_host: HostId) -> None:
        portions = self._keeper.portions(giver.operator, groups, to_host)
        copies = [StateTask(Task.COPY, giver.operator, some, to_host) for some in portions]
        self._under_way.append(Transfer(giver.operator, groups, giver, taker, from_host, to_host, waiting=copies))

    def host_went(self, host: int) -> None:
        for transfer in [t for t in self._under_way if host in (t.from_host.number, t.to_host.number)]:
            self._end(transfer)

    def cancel(self, operator: str) -> None:
        """End those of an operator: nothing has changed hands yet."""
        for transfer in [t for t in self._under_way if t.operator == operator]:
            self._end(transfer)

    def done(self, sent: SentTask) -> None:
        """A task's receipt has come. Of one that is refused nothing is known: its transfer ends with the next look."""
        if sent.refused:
            return
        for transfer in self._under_way:
            if any(task is sent.task for task in transfer.open):
                transfer.open = [task for task in transfer.open if task is not sent.task]
                if transfer.step is Step.COMPARING:
                    side = transfer.before if sent.task.kind is Task.MEASURE else transfer.after
                    side.update({facts.group: facts for facts in sent.facts})

    def advance(self, now: float) -> list[Transfer]:
        """Take every transfer as far as it can go; gives those that are over, agreed or refused."""
        over = []
        for transfer in list(self._under_way):
            if not all(map(self._keeper.is_open, transfer.open)):
                # A task was dropped or refused, because groups or hosts are not where they were: it begins anew, if it is still wanted.
                self._end(transfer)
                continue
            transfer.waiting = [task for task in transfer.waiting if not self._ask(transfer, task)]
            if transfer.waiting or transfer.open:
                continue
            if transfer.step is Step.COPYING:
                transfer.step = Step.STOPPING
                self._keeper.stopped.add(transfer.giver)
            if transfer.step is Step.STOPPING and self._is_free(transfer.giver):
                transfer.step, transfer.stopped_s = Step.COMPARING, now
                transfer.waiting = [
                    StateTask(Task.COPY, transfer.operator, transfer.groups, transfer.to_host, measure=True),
                    StateTask(Task.MEASURE, transfer.operator, transfer.groups, transfer.from_host),
                ]
                transfer.waiting = [task for task in transfer.waiting if not self._ask(transfer, task)]
            elif transfer.step is Step.COMPARING:
                transfer.waited_s = now - transfer.stopped_s
                agreed = transfer.before == transfer.after
                transfer.step = Step.AGREED if agreed else Step.REFUSED
                if not agreed:
                    log.error(
                        "operator %r: key groups %s are not the same in hosts %d and %d; they stay where they are",
                        transfer.operator,
                        [group for group in transfer.groups if transfer.before.get(group) != transfer.after.get(group)],
                        transfer.from_host.number,
                        transfer.to_host.number,
                    )
                self._end(transfer)
                over.append(transfer)
        return over

    def _ask(self, transfer: Transfer, task: StateTask) -> bool:
        asked = self._keeper.ask(task)
        if asked:
            transfer.open.append(task)
        return asked

    def _end(self, transfer: Transfer) -> None:
        self._under_way.remove(transfer)
        if not any(t.giver == transfer.giver and t.step is not Step.COPYING for t in self._under_way):
            self._keeper.stopped.discard(transfer.giver)
