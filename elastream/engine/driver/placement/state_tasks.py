"""Tasks about states: what a host shall learn, measure or write, and which tasks wait or are under way."""

from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

from elastream.engine.driver.placement.hosts import HostId
from elastream.engine.messages import GroupFacts, SyncWork, WholeWork
from elastream.lanes.segments import LaneId
from elastream.lanes.state_log import Whole

Group = tuple[str, int]
"""A key group of an operator."""

_About = tuple["Task", bool, str, HostId, int]


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
    host: HostId
    lane: LaneId | None = None
    """The lane that is served by nobody meanwhile."""
    measure: bool = False

    @property
    def places(self) -> list[Group]:
        return [(self.operator, group) for group in self.groups]

    @property
    def urgency(self) -> int:
        """Lanes stand still for what comes first; then copies, which wholes only make shorter."""
        if self.kind in (Task.LOAD, Task.MEASURE) or self.measure:
            return 0
        return 1 if self.kind is Task.COPY else 2


@dataclass
class SentTask:
    """A task that a host has, and the part of the log that it is about."""

    task: StateTask
    number: int
    """The log's next number when it was sent: it knows all changes before."""
    wholes: dict[int, Whole] = field(default_factory=dict)
    """The last wholes of its groups when it was sent."""
    segments: frozenset[str] = frozenset()
    """Those that the host reads for it: they are in use until its receipt."""
    facts: list[GroupFacts] = field(default_factory=list)
    refused: bool = False
    """True when its receipt does not count, because it was overtaken: the task is asked for again when that is needed."""


class TaskQueue:
    """The tasks that wait and those that hosts have. In the tick's thread."""

    def __init__(self) -> None:
        self._waiting: deque[StateTask] = deque()
        self._sent: list[SentTask] = []
        self._asked: set[_About] = set()
        """Tasks that wait or are under way, by what they are about: once is enough."""
        self._segments: Counter[str] = Counter()

    def ask(self, task: StateTask) -> bool:
        """Add a task; False while the same is being done for somebody else."""
        about = _about(task)
        if about & self._asked:
            return False
        self._asked |= about
        self._waiting.append(task)
        return True

    def waiting(self) -> list[StateTask]:
        """The tasks that were not sent yet, the urgent ones first."""
        return sorted(self._waiting, key=lambda task: task.urgency)

    def drop(self, task: StateTask) -> None:
        """Remove a task that was not sent."""
        self._waiting.remove(task)
        self._asked.difference_update(_about(task))

    def sent(self, sent: SentTask) -> None:
        self._waiting.remove(sent.task)
        self._sent.append(sent)
        self._segments.update(sent.segments)

    def ended(self, sent: SentTask) -> None:
        """A receipt has come, or the host is gone; a second time changes nothing."""
        if any(other is sent for other in self._sent):
            self._sent = [other for other in self._sent if other is not sent]
            self._asked.difference_update(_about(sent.task))
            self._segments.subtract(sent.segments)
            self._segments += Counter()

    def is_open(self, task: StateTask) -> bool:
        """True while it waits or is under way."""
        return any(other is task for other in self._waiting) or any(sent.task is task for sent in self._sent)

    def count_at(self, host: HostId) -> int:
        """Tasks that a host has."""
        return sum(sent.task.host == host for sent in self._sent)

    def concerns(
        self, host: HostId, operator: str, groups: Iterable[int], kinds: Collection[Task] = tuple(Task)
    ) -> bool:
        """True while a host has a task of these kinds about one of some groups."""
        wanted = [
            s.task for s in self._sent if s.task.host == host and s.task.operator == operator and s.task.kind in kinds
        ]
        return any(not set(task.groups).isdisjoint(groups) for task in wanted)

    @property
    def segments(self) -> Collection[str]:
        """Segments that works under way name."""
        return self._segments.keys()


def segments_of(work: SyncWork | WholeWork) -> frozenset[str]:
    """The segments that a host reads for a work."""
    if isinstance(work, WholeWork):
        return frozenset()
    return frozenset(piece.segment for piece in (*work.wholes, *(change.slice for change in work.changes)))


def _about(task: StateTask) -> set[_About]:
    return {(task.kind, task.measure, task.operator, task.host, group) for group in task.groups}
