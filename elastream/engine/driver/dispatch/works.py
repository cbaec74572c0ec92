"""One table of works: those that hosts have, with the lanes, threads and room that they take."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from elastream.engine.driver.dispatch.headroom import Headroom
from elastream.engine.driver.dispatch.suspects import Suspects
from elastream.engine.driver.placement.hosts import HostRecord, HostTable
from elastream.engine.driver.placement.state_tasks import SentTask
from elastream.engine.messages import SourceWork, Work
from elastream.lanes.entries import Given
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState


class Moment(NamedTuple):
    """When a tick is made, and what it may do."""

    now: float
    """By the monotonic clock."""
    wall_s: float
    running: bool
    """False before the stream begins and after a stop: then receipts are committed, and no work is sent."""
    budget_s: float
    """How long a work may take."""


@dataclass
class Dispatch:
    """Works to be sent, and what the entry must hold before they are."""

    works: dict[int, list[Work]] = field(default_factory=dict)
    """Per host."""
    given: list[Given] = field(default_factory=list)
    """Tuples that sinks and Spark are given."""
    offer: int = -1
    """The number of a new offer to dataframe operators."""

    def add(self, host: int, work: Work) -> None:
        self.works.setdefault(host, []).append(work)


@dataclass(frozen=True)
class UnderWay:
    """A work that a host has."""

    id: int
    host: int
    operator: str
    lanes: dict[LaneId, int]
    """Tuples per lane."""
    sent_s: float
    computes: bool
    alone: bool
    """True if the host has nothing else meanwhile."""
    source: SourceWork | None = None
    task: SentTask | None = None
    """A work about states."""


class WorkTable:
    """Works by number, and lanes that are busy, suspected or to be discarded. In the driver's thread only."""

    def __init__(self, state: LedgerState, hosts: HostTable, headroom: Headroom, suspects: Suspects) -> None:
        self._state = state
        self._hosts = hosts
        self.headroom = headroom
        self.suspects = suspects
        self._ids = count(1)
        self._turns = count()
        self._works: dict[int, UnderWay] = {}
        self._busy: set[LaneId] = set()
        """Lanes of which a work is under way."""
        self.discarding: set[LaneId] = set()
        """Lanes that get no work: their tuples are to be dropped."""

    def __bool__(self) -> bool:
        return bool(self._works)

    def __contains__(self, work: int) -> bool:
        return work in self._works

    def get(self, work: int) -> UnderWay | None:
        return self._works.get(work)

    def all(self) -> Iterable[UnderWay]:
        return self._works.values()

    @property
    def has_hosts(self) -> bool:
        return len(self._hosts) > 0

    def next_id(self) -> int:
        return next(self._ids)

    def next_turn(self) -> int:
        """A number that grows: of two lanes that are due at once, the first to come is the first to go."""
        return next(self._turns)

    def add(self, work: UnderWay, record: HostRecord) -> None:
        """A work is sent: take its lanes and its thread."""
        self._works[work.id] = work
        self._busy.update(work.lanes)
        record.works.add(work.id)
        record.computing += work.computes
        record.reading += work.source is not None

    def remove(self, number: int) -> UnderWay | None:
        """A work is done or lost: free what it took. None if it is not known."""
        work = self._works.pop(number, None)
        if work is not None:
            self.headroom.release(number)
            self._busy.difference_update(work.lanes)
            record = self._hosts.get(work.host)
            if record is not None and number in record.works:
                record.works.discard(number)
                record.computing -= work.computes
                record.reading -= work.source is not None
        return work

    def is_busy(self, lane: LaneId) -> bool:
        """True while a work of this lane is under way."""
        return lane in self._busy

    def is_free(self, lane: LaneId) -> bool:
        """True if nothing of a lane is under way, given to somebody outside, or to be tried again as it was."""
        return lane not in self._busy and lane not in self._state.given and lane not in self.suspects

    def discard(self, operators: Iterable[str]) -> None:
        """Drop the tuples that wait for these operators now; those under way are served."""
        names = frozenset(operators)
        self.discarding.update(lane for lane in self._state.lanes if lane.operator in names)

    def discarded(self, lane: LaneId, rows: int) -> None:
        """The first tuples of a lane are dropped: they are suspected of nothing, and no host is kept free for them."""
        self.suspects.served(lane, self._state.queue(lane).consumed + rows)
        self.free_hosts()

    def free_hosts(self) -> None:
        """If no work must be alone any more, no host is kept free for one."""
        if not self.suspects:
            self._hosts.release_isolated()

    def waiting_behind(self) -> Counter[str]:
        """Per operator, the tuples behind a work of their lane that is under way."""
        waiting: Counter[str] = Counter()
        for work in self._works.values():
            for lane, rows in work.lanes.items():
                waiting[lane.operator] += len(self._state.queue(lane)) - rows
        return waiting
