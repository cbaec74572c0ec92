"""Where the states of key groups are: which host has each as it is now, who has copies of it, and what must be learned next.

The state of a group is live in the host of the lane that owns it: works change it there, and their receipts name what changed.
A copy in another host is as of some change; it learns the rest from the ledger's log. So a lane that gets another home, after
a death or by a decision, has what it needs when its new host knows the log to its end.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from elastream import rules
from elastream.engine.messages import GroupFacts, GroupSince, Receipt, SyncWork, WholeWork
from elastream.engine.tick.roster import Roster
from elastream.lanes.segments import LaneId, Slice
from elastream.lanes.state import LedgerState
from elastream.topology import Graph
from elastream.topology.groupings import KEY_GROUPS

Group = tuple[str, int]
"""A key group of an operator."""


_About = tuple["Task", bool, str, int, int]


class Task(Enum):
    """What a host shall do about states."""

    LOAD = "load"
    """Learn what a lane needs before it is served."""
    COPY = "copy"
    """Learn a copy of what another host has."""
    MEASURE = "measure"
    """Say what groups amount to."""
    WHOLE = "whole"
    """Write groups whole."""


@dataclass(frozen=True)
class StateTask:
    """One work about states, to be sent when its host and its lane are free."""

    kind: Task
    operator: str
    groups: tuple[int, ...]
    host: int
    lane: LaneId | None = None
    """The lane that is served by nobody meanwhile."""
    measure: bool = False


@dataclass
class SentTask:
    """One that was sent, and how much of the log it knows."""

    task: StateTask
    number: int
    facts: list[GroupFacts] = field(default_factory=list)


class StateKeeper:
    """For the keyed operators of a run. In the tick's thread."""

    def __init__(self, graph: Graph, state: LedgerState, roster: Roster, ring_s: float | None) -> None:
        self._state = state
        self._roster = roster
        self._ring_s = ring_s
        self.operators = frozenset(o.name for o in graph.operators if o.keyed is not None)
        self._forgetful = frozenset(o.name for o in graph.operators if o.keyed is not None and o.keyed.ttl_s)
        self._live: dict[Group, int] = {}
        """The host that has a group as it is now."""
        self._copies: dict[Group, dict[int, int]] = {}
        """Hosts that know a group up to a change, by its number."""
        self._tasks: deque[StateTask] = deque()
        self._asked: set[_About] = set()
        """Tasks that wait or are under way, by what they are about: once is enough."""
        self._under_way: Counter[int] = Counter()
        """Per host, the tasks that it has."""
        self._groups_under_way: set[tuple[int, Group]] = set()
        """Hosts, and the groups of the tasks that each has."""
        self._ring_at_s = 0.0
        self._whole_at_s: dict[LaneId, float] = {}
        """When groups of a lane may be written whole again."""
        self.stopped: set[LaneId] = set()
        """Lanes that get no work, because their groups are about to move."""

    def __bool__(self) -> bool:
        return bool(self.operators)

    # -- where things are

    def groups_of(self, lane: LaneId) -> list[int]:
        owners = self._state.owners[lane.operator]
        return [group for group, owner in enumerate(owners) if owner == lane.lane]

    def has_live(self, host: int) -> bool:
        """True while a group is live in this host."""
        return host in self._live.values()

    def live_host(self, operator: str, group: int) -> int | None:
        return self._live.get((operator, group))

    def prepare(self, lane: LaneId) -> bool:
        """True when a lane may be served in its home; else what it needs is asked for."""
        home = self._roster.settled(lane)
        if home is None or lane in self.stopped:
            return False
        missing = [group for group in self.groups_of(lane) if self._live.get((lane.operator, group)) != home.host]
        unknown = []
        for group in missing:
            if self._has_log(lane.operator, group):
                unknown.append(group)
            else:
                self._live[lane.operator, group] = home.host
        for some in self.portions(lane.operator, unknown, home.host):
            self.ask(StateTask(Task.LOAD, lane.operator, some, home.host, lane))
        return not unknown

    def copy_host(self, lane: LaneId) -> int | None:
        """The host that knows most of what a lane needs; None when nobody knows anything."""
        known: dict[int, int] = {}
        for group in self.groups_of(lane) if lane.operator in self.operators else ():
            for host in self._copies.get((lane.operator, group), ()):
                known[host] = known.get(host, 0) + 1
        found = [host for host in known if host in self._roster.staying()]
        return max(found, key=lambda host: (known[host], -host), default=None)

    # -- what happens

    def host_went(self, host: int) -> None:
        for group in [group for group, live in self._live.items() if live == host]:
            del self._live[group]
        for copies in self._copies.values():
            copies.pop(host, None)
        for task in [task for task in self._tasks if task.host == host]:
            self._drop(task)

    def sent(self, task: StateTask) -> SentTask:
        self._tasks.remove(task)
        self._under_way[task.host] += 1
        self._groups_under_way.update((task.host, (task.operator, group)) for group in task.groups)
        return SentTask(task, self._state.logs[task.operator].next_number)

    def lost(self, sent: SentTask) -> None:
        self._ended(sent.task)
        self._asked.difference_update(_about(sent.task))

    def done(self, sent: SentTask, receipt: Receipt) -> None:
        """A task's receipt has come and is applied."""
        task = sent.task
        self._ended(task)
        sent.facts = receipt.facts
        self._asked.difference_update(_about(task))
        for group in task.groups:
            place = task.operator, group
            if task.kind is Task.LOAD and self._is_home(task, group):
                self._live[place] = task.host
                self._copies.get(place, {}).pop(task.host, None)
            elif task.kind in (Task.LOAD, Task.COPY) and self._live.get(place) != task.host:
                self._copies.setdefault(place, {})[task.host] = sent.number
            elif task.kind is Task.WHOLE and task.operator in self._forgetful:
                # Keys that were too old are gone from it without a change that says so.
                self._copies.pop(place, None)

    def moved(self, operator: str, groups: Iterable[int], host: int) -> None:
        """Groups are live in another host from now on; what the old one has is a copy, as of now."""
        number = self._state.logs[operator].next_number
        for group in groups:
            before = self._live.get((operator, group))
            copies = self._copies.setdefault((operator, group), {})
            copies.pop(host, None)
            if before is not None and before != host:
                copies[before] = number
            self._live[operator, group] = host

    # -- what comes next

    def look(self, now: float) -> None:
        """Ask for what must be written whole, and for the copies of the ring."""
        for operator in self.operators:
            self._compact(operator, now)
        if self._ring_s is not None and now - self._ring_at_s >= self._ring_s:
            self._ring_at_s = now
            for operator in self.operators:
                self._copy_around(operator)

    def tasks(self) -> Iterator[StateTask]:
        """Those that may be sent now, the urgent ones first; each that is sent counts at once.

        A host does few at a time: they would only be in each other's way. One that tries a suspected work alone does only what
        that work needs. Nor does it do two about one group: the slower would undo what the other, and works after it, have done.
        """
        for task in sorted(self._tasks, key=_urgency):
            seats = self._roster.hosts.get(task.host)
            urgent = _urgency(task) == 0
            places = [(task.operator, group) for group in task.groups]
            if task.kind is Task.COPY and any(self._live.get(place) == task.host for place in places):
                # It was to have a copy, and has taken the group over meanwhile: it knows more than is committed.
                self._drop(task)
                continue
            if seats is None or (seats.alone and not urgent):
                continue
            if any((task.host, place) in self._groups_under_way for place in places):
                continue
            if urgent or self._under_way[task.host] < rules.MOST_STATE_TASKS:
                yield task

    def ask(self, task: StateTask) -> bool:
        """Have something done; False while the same is being done for somebody else."""
        about = _about(task)
        if about & self._asked:
            return False
        self._asked |= about
        self._tasks.append(task)
        return True

    def portions(self, operator: str, groups: Iterable[int], host: int | None = None) -> list[tuple[int, ...]]:
        """So many groups together that learning them, in a host that may know some, takes no longer than a short work."""
        log = self._state.logs[operator]
        found: list[tuple[int, ...]] = []
        some: list[int] = []
        behind: dict[int, float] = {}
        """Rows of changes per group, from a number on."""
        keys = 0.0
        for group in groups:
            whole = log.whole(group)
            known = self._copies.get((operator, group), {}).get(host) if host is not None else None
            useful = known is not None and log.has_since(group, known)
            since = known if useful and known is not None else whole.since
            if since not in behind:
                behind[since] = log.rows_since(since) / KEY_GROUPS
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
        log = self._state.logs[task.operator]
        groups: list[GroupSince] = []
        wholes: list[Slice] = []
        for group in task.groups:
            known = self._copies.get((task.operator, group), {}).get(task.host)
            whole = log.whole(group)
            anew = known is None or not log.has_since(group, known)
            groups.append(GroupSince(group, whole.since if anew or known is None else known, anew))
            wholes += whole.slices if anew else ()
        first = min(one.since for one in groups)
        changes = list(log.since(task.groups, first))
        return SyncWork(identity, task.operator, groups, wholes, changes, [], task.measure)

    # -- inside

    def _ended(self, task: StateTask) -> None:
        self._under_way[task.host] -= 1
        self._groups_under_way.difference_update((task.host, (task.operator, group)) for group in task.groups)

    def _is_home(self, task: StateTask, group: int) -> bool:
        """True when the lane that a group was loaded for still owns it, and lives there."""
        lane = task.lane
        owner = self._state.owners[task.operator][group]
        return lane is not None and owner == lane.lane and self._roster.home(lane) == task.host

    def _has_log(self, operator: str, group: int) -> bool:
        log = self._state.logs[operator]
        return group in log.wholes or log.last_change(group) >= 0

    def _drop(self, task: StateTask) -> None:
        self._tasks.remove(task)
        self._asked.difference_update(_about(task))

    def _compact(self, operator: str, now: float) -> None:
        log = self._state.logs[operator]
        if not rules.compacts(len(log.changes), log.rows, log.keys):
            return
        owners = self._state.owners[operator]
        by_lane: dict[int, list[int]] = {}
        for group in sorted(log.oldest_groups()):
            by_lane.setdefault(owners[group], []).append(group)
        for number, groups in by_lane.items():
            lane = LaneId(operator, number)
            # Between two such works it serves its tuples.
            if now >= self._whole_at_s.get(lane, 0.0) and self.prepare(lane):
                self._whole_at_s[lane] = now + rules.BETWEEN_WHOLES_S
                home = self._roster.home(lane)
                assert home is not None
                self.ask(StateTask(Task.WHOLE, operator, self.portions(operator, groups)[0], home, lane))

    def _copy_around(self, operator: str) -> None:
        """Each lane's changed groups go to the host of the next lane that lives elsewhere."""
        log = self._state.logs[operator]
        lanes = [LaneId(operator, number) for number in sorted(set(self._state.owners[operator]))]
        homes, staying = [self._roster.home(lane) for lane in lanes], self._roster.staying()
        for place, (lane, home) in enumerate(zip(lanes, homes, strict=True)):
            around = [*homes[place + 1 :], *homes[:place]]
            neighbour = next((host for host in around if host in staying and host != home), None)
            if neighbour is None or home is None:
                continue
            behind = [
                group
                for group in self.groups_of(lane)
                if self._live.get((operator, group)) == home
                and self._has_log(operator, group)
                and self._copies.get((operator, group), {}).get(neighbour, -1) <= log.last_change(group)
            ]
            for some in self.portions(operator, behind, neighbour):
                self.ask(StateTask(Task.COPY, operator, some, neighbour))


def _urgency(task: StateTask) -> int:
    """Lanes stand still for what comes first; then copies, which wholes only make shorter."""
    if task.kind in (Task.LOAD, Task.MEASURE) or task.measure:
        return 0
    return 1 if task.kind is Task.COPY else 2


def _about(task: StateTask) -> set[_About]:
    return {(task.kind, task.measure, task.operator, task.host, group) for group in task.groups}
