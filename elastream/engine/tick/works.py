"""Works: those that are to be sent next, and those that hosts have."""

from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from elastream.engine.messages import SourceWork, Work
from elastream.engine.tick.headroom import Headroom
from elastream.engine.tick.roster import Roster, Seats
from elastream.engine.tick.state_tasks import SentTask
from elastream.lanes.entries import Given
from elastream.lanes.segments import LaneId


class PlanMoment(NamedTuple):
    """When works are planned, and how long each may take."""

    now: float
    wall_s: float
    budget_s: float


@dataclass
class NextWorks:
    """What is to be sent, and what must be in the ledger before it is."""

    works: dict[int, list[Work]] = field(default_factory=dict)
    """Per host."""
    given: list[Given] = field(default_factory=list)
    offer: int = -1
    """The number of a new offer to dataframe operators."""


@dataclass(frozen=True)
class UnderWay:
    """A work that a host has."""

    id: int
    host: int
    operator: str
    lanes: dict[LaneId, int]
    """How many tuples of each lane."""
    sent_s: float
    computes: bool
    alone: bool
    source: SourceWork | None = None
    task: SentTask | None = None
    """About states."""


class WorksUnderWay:
    """The works that hosts have, with the lanes and the seats that they take. In the tick's thread."""

    def __init__(self, roster: Roster, headroom: Headroom) -> None:
        self._roster = roster
        self._headroom = headroom
        self.ids = count(1)
        self.known: dict[int, UnderWay] = {}
        """By their ids."""
        self.busy: set[LaneId] = set()
        """Lanes of which a work is under way."""

    def add(self, known: UnderWay, seats: Seats) -> None:
        """A work is sent: its lanes and its seat are taken."""
        self.known[known.id] = known
        self.busy.update(known.lanes)
        seats.works.add(known.id)
        seats.computing += known.computes
        seats.reading += known.source is not None

    def remove(self, work: int) -> UnderWay | None:
        """A work is done or lost: what it took and had reserved is free. None when nobody knows it."""
        known = self.known.pop(work, None)
        if known is not None:
            self._headroom.release(work)
            self.busy.difference_update(known.lanes)
            seats = self._roster.hosts.get(known.host)
            if seats is not None and work in seats.works:
                seats.works.discard(work)
                seats.computing -= known.computes
                seats.reading -= known.source is not None
        return known
