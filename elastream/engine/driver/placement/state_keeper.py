"""Works about the states of key groups: what must be restored, copied, measured or written whole next.

Where states are is in the table of key groups (`groups.py`). A lane that gets another home, after a death or by a decision, has
what it needs once its new host knows the log to its end.
"""

import logging
from collections.abc import Collection, Iterable, Iterator

from elastream import rules
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostId, HostTable
from elastream.engine.driver.placement.state_tasks import SentTask, StateTask, Task, TaskQueue, segments_of
from elastream.engine.messages import GroupSince, Receipt, SyncWork, WholeWork
from elastream.errors import Damaged
from elastream.lanes.segments import LaneId, Slice
from elastream.lanes.state import LedgerState
from elastream.topology import Graph
from elastream.topology.groupings import KEY_GROUPS

log = logging.getLogger("elastream.tick")

LEARNS = (Task.LOAD, Task.COPY)
"""Tasks by which a host writes the states of groups into its store."""


class StateKeeper:
    """For the stateful operators of a run. In the driver's thread only."""

    def __init__(
        self,
        graph: Graph,
        state: LedgerState,
        hosts: HostTable,
        homes: LaneHomes,
        groups: GroupTable,
        ring_s: float | None,
    ) -> None:
        self._state = state
        self._hosts = hosts
        self._homes = homes
        self._groups = groups
        self._ring_s = ring_s
        self._forgetful = frozenset(o.name for o in graph.operators if o.keyed is not None and o.keyed.ttl_s)
        self._queue = TaskQueue()
        self._ring_at_s = 0.0
        self._whole_at_s: dict[LaneId, float] = {}
        """When groups of a lane may be written whole again."""

    def __bool__(self) -> bool:
        return bool(self._groups.stateful)

    # -- tasks

    def ask(self, task: StateTask) -> bool:
        """Have a task done; False while the same is being done for somebody else."""
        return self._queue.ask(task)

    def is_open(self, task: StateTask) -> bool:
        """True while a task waits or is under way."""
        return self._queue.is_open(task)

    def waiting(self) -> list[StateTask]:
        """The tasks that were not sent yet, the urgent ones first."""
        return self._queue.waiting()

    @property
    def segments_in_use(self) -> Collection[str]:
        """Segments that hosts read for tasks under way, whether the ledger still names them or not."""
        return self._queue.segments

    def prepare(self, lane: LaneId) -> bool:
        """True if a lane may be served in its home; else ask for what it needs."""
        home = self._homes.settled(lane)
        if home is None or self._groups.is_frozen(lane):
            return False
        here, groups = home.identity, self._groups.of_lane(lane)
        missing = [group for group in groups if self._groups.primary(lane.operator, group) != here]
        unknown = []
        for group in missing:
            if self._has_log(lane.operator, group):
                unknown.append(group)
            else:
                self._groups(lane.operator, group).primary = here
        for some in self.portions(lane.operator, unknown, here):
            self.ask(StateTask(Task.LOAD, lane.operator, some, here, lane))
        # What is being learned there would be written over what the lane's works change.
        return not unknown and not self._queue.concerns(here, lane.operator, groups, LEARNS)

    # -- what happens

    def host_lost(self, host: int) -> None:
        for task in [task for task in self._queue.waiting() if task.host.number == host]:
            self._queue.drop(task)

    def sent(self, task: StateTask, work: SyncWork | WholeWork) -> SentTask:
        """A task is sent now, as this work.

        The lane of a WHOLE has no work under way, and gets none before the receipt. So the host has exactly the changes before
        the log's next number: the whole is as of that number.
        """
        state_log = self._state.logs[task.operator]
        wholes = {group: state_log.whole(group) for group in task.groups}
        sent = SentTask(task, state_log.next_number, wholes, segments_of(work))
        self._queue.sent(sent)
        return sent

    def lost(self, sent: SentTask) -> None:
        self._queue.ended(sent)

    def is_current(self, task: StateTask) -> bool:
        """True when a task is still right: its host is there, and the groups are where it takes them to be.

        Looked at when it is sent and when its receipt has come.
        """
        if self._hosts.of(task.host) is None:
            return False
        live = [self._groups.primary(*place) == task.host for place in task.places]
        if task.kind is Task.COPY:
            # A host that has taken a group over knows more than is committed.
            return not any(live)
        if task.kind is Task.MEASURE:
            return all(live)
        owners = self._state.owners[task.operator]
        if task.lane is None or any(owners[group] != task.lane.lane for group in task.groups):
            return False
        if task.kind is Task.WHOLE:
            return all(live)
        return self._homes.home(task.lane) == task.host.number and not any(live)

    def check(self, sent: SentTask, receipt: Receipt) -> tuple[Receipt, list[str]]:
        """The receipt of a task as it counts, and the segments of one that is refused because it was overtaken."""
        if receipt.problem is not None:
            # Segments that the ledger no longer names may go: it is asked for again, with those that it names now.
            obsolete = any(not self._state.names(segment) for segment in sent.segments)
            sent.refused = obsolete and receipt.problem.kind == Damaged.__name__
        else:
            sent.refused = not self.is_current(sent.task) or self._is_overtaken(sent)
        if sent.refused:
            return Receipt(receipt.work), [piece.segment for whole in receipt.wholes for piece in whole.slices]
        receipt.wholes = [whole._replace(since=sent.number) for whole in receipt.wholes]
        return receipt, []

    def done(self, sent: SentTask, receipt: Receipt) -> None:
        """A task's receipt has come and is applied."""
        task = sent.task
        self._queue.ended(sent)
        sent.facts = receipt.facts
        for operator, group in task.places:
            place = self._groups(operator, group)
            if sent.refused or self._lacks_forgetting(sent, group):
                # How much of the group the host has is not known.
                place.copies.pop(task.host, None)
            elif task.kind is Task.LOAD:
                self._groups.restored(operator, group, task.host)
            elif task.kind is Task.COPY:
                place.copies[task.host] = sent.number
            elif task.kind is Task.WHOLE and task.operator in self._forgetful:
                # Keys that were too old are gone from it without a change that says so.
                place.copies.clear()

    # -- what comes next

    def look(self, now: float) -> None:
        """Ask for what must be written whole, and for the copies of the ring."""
        for operator in sorted(self._groups.stateful):
            self._compact(operator, now)
        if self._ring_s is not None and now - self._ring_at_s >= self._ring_s:
            self._ring_at_s = now
            for operator in sorted(self._groups.stateful):
                self._copy_around(operator)

    def tasks(self) -> Iterator[StateTask]:
        """Those that may be sent now, the urgent ones first; each that is sent counts at once.

        A host does few at a time: they would only be in each other's way. One that tries a suspected work alone does only what
        that work needs. Nor does it do two about one group: the slower would undo what the other, and works after it, have done.
        Those that were overtaken while they waited are dropped; whoever needs them asks again.
        """
        for task in self._queue.waiting():
            if not self.is_current(task):
                self._queue.drop(task)
                continue
            urgent = task.urgency == 0
            if self._hosts[task.host.number].isolated and not urgent:
                continue
            if self._queue.concerns(task.host, task.operator, task.groups):
                continue
            if urgent or self._queue.count_at(task.host) < rules.MOST_STATE_TASKS:
                yield task

    def portions(self, operator: str, groups: Iterable[int], host: HostId | None = None) -> list[tuple[int, ...]]:
        """So many groups together that learning them, in a host that may know some, takes no longer than a short work."""
        state_log = self._state.logs[operator]
        found: list[tuple[int, ...]] = []
        some: list[int] = []
        behind: dict[int, float] = {}
        """Rows of changes per group, from a number on."""
        keys = 0.0
        for group in groups:
            whole = state_log.whole(group)
            known = self._groups(operator, group).copies.get(host) if host is not None else None
            useful = known is not None and state_log.has_since(group, known)
            since = known if useful and known is not None else whole.since
            if since not in behind:
                behind[since] = state_log.rows_since(since) / KEY_GROUPS
            size = behind[since] + (0 if useful else whole.keys)
            if some and keys + size > rules.PORTION_KEYS:
                found.append(tuple(some))
                some, keys = [], 0.0
            some.append(group)
            keys += size
        return [*found, tuple(some)] if some else found

    def work(self, task: StateTask, identity: int) -> SyncWork | WholeWork:
        """The message for a host."""
        if task.kind in (Task.MEASURE, Task.WHOLE):
            return WholeWork(identity, task.operator, list(task.groups), task.kind is Task.WHOLE)
        state_log = self._state.logs[task.operator]
        groups: list[GroupSince] = []
        wholes: list[Slice] = []
        for group in task.groups:
            known = self._groups(task.operator, group).copies.get(task.host)
            whole = state_log.whole(group)
            anew = known is None or not state_log.has_since(group, known)
            groups.append(GroupSince(group, whole.since if anew or known is None else known, anew))
            wholes += whole.slices if anew else ()
        first = min(one.since for one in groups)
        # A host has no use for their checksums.
        changes = [change._replace(sums=b"") for change in state_log.since(task.groups, first)]
        return SyncWork(identity, task.operator, groups, wholes, changes, [], task.measure)

    # -- inside

    def _is_overtaken(self, sent: SentTask) -> bool:
        """True when the log has gone on so that what a task did is worth nothing."""
        task, state_log = sent.task, self._state.logs[sent.task.operator]
        if task.kind is Task.WHOLE:
            changed = [group for group in task.groups if state_log.last_change(group) >= sent.number]
            if changed:
                log.error(
                    "operator %r: key groups %s changed while host %d wrote them whole; what it wrote is not used",
                    task.operator,
                    changed,
                    task.host.number,
                )
            return bool(changed)
        return any(self._lacks_forgetting(sent, group) for group in task.groups)

    def _lacks_forgetting(self, sent: SentTask, group: int) -> bool:
        """True when a host has learned a group from before a newer whole that lacks keys which were too old: no change says so."""
        task = sent.task
        if task.kind not in LEARNS or task.operator not in self._forgetful:
            return False
        return self._state.logs[task.operator].whole(group) != sent.wholes[group]

    def _has_log(self, operator: str, group: int) -> bool:
        state_log = self._state.logs[operator]
        return group in state_log.wholes or state_log.last_change(group) >= 0

    def _compact(self, operator: str, now: float) -> None:
        state_log = self._state.logs[operator]
        if not rules.compacts(len(state_log.changes), state_log.rows, state_log.keys):
            return
        owners = self._state.owners[operator]
        by_lane: dict[int, list[int]] = {}
        for group in sorted(state_log.oldest_groups()):
            by_lane.setdefault(owners[group], []).append(group)
        for number, groups in by_lane.items():
            lane = LaneId(operator, number)
            # Between two such works it serves its tuples.
            if now >= self._whole_at_s.get(lane, 0.0) and self.prepare(lane):
                self._whole_at_s[lane] = now + rules.BETWEEN_WHOLES_S
                home = self._homes.settled(lane)
                assert home is not None
                self.ask(StateTask(Task.WHOLE, operator, self.portions(operator, groups)[0], home.identity, lane))

    def _copy_around(self, operator: str) -> None:
        """Each lane's changed groups go to the host of the next lane that lives elsewhere."""
        state_log = self._state.logs[operator]
        lanes = [LaneId(operator, number) for number in sorted(set(self._state.owners[operator]))]
        homes = [self._hosts.identity(self._homes.home(lane)) for lane in lanes]
        staying = {record.identity for record in self._hosts.staying()}
        for place, (lane, home) in enumerate(zip(lanes, homes, strict=True)):
            around = [*homes[place + 1 :], *homes[:place]]
            neighbour = next((host for host in around if host in staying and host != home), None)
            if neighbour is None or home is None:
                continue
            behind = [
                group
                for group in self._groups.of_lane(lane)
                if self._groups.primary(operator, group) == home
                and self._has_log(operator, group)
                and self._groups(operator, group).copies.get(neighbour, -1) <= state_log.last_change(group)
            ]
            for some in self.portions(operator, behind, neighbour):
                self.ask(StateTask(Task.COPY, operator, some, neighbour))
