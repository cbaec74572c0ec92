"""`Grouping`: the base class of all ways to choose lanes, and the facts that a choice may use."""

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.routing.key_groups import Owners, Splits

Lanes = npt.NDArray[np.int64]


class LoadMeasure(Enum):
    """The measure of a replica's load that a grouping asks for."""

    BUSY = "busy"
    """The share of its time that a replica was busy in the last interval, plus the tuples it was sent since (PSPS, equation 5)."""

    QUEUED = "queued"
    """The tuples that wait in front of a replica, over those it can serve in an interval."""

    RATIO = "ratio"
    """How full a replica's queue is (Dr-Stream, equation 5); only given while the load is uneven."""


class SimulatedAs(Enum):
    """The model that stands for a grouping in the simulator, where tuples have no columns."""

    EVEN = "even"
    """The same number for each replica."""

    POPULARITY = "popularity"
    """Keys choose the replica, some more often than others."""

    FIRST = "first"
    """All to the first replica."""

    EVERY = "every"
    """Every tuple to every replica."""

    BUSY = "busy"
    """To the replica that was least busy lately."""

    SHORTEST = "shortest"
    """To the replica with the shortest queue."""

    REDIRECTED = "redirected"
    """Evenly, or by room while the load is uneven."""

    DRAWN = "drawn"
    """At random, by how empty the queues were within the last second."""


@dataclass(frozen=True)
class Snapshot:
    """The state of the replicas behind an edge, as far as routing may know it; the same for every work of a tick."""

    active: tuple[int, ...]
    """The lanes that receive."""

    queued: tuple[int, ...] = ()
    """How many tuples wait in each of them; empty: none do, or the grouping did not ask."""

    load: tuple[float, ...] = ()
    """The load of each one; empty: not known."""

    cost: float = 0.0
    """By how much a tuple adds to a load."""

    owners: Owners | None = None
    """The lane of every key group; None: the groups are dealt out among the active lanes."""

    splits: Splits = field(default_factory=dict)
    """Keys that are dealt out to several key groups."""


@dataclass(frozen=True)
class Sender:
    """The work that sends: its own lane, and a number that differs from work to work and from tick to tick."""

    lane: int = 0
    turn: int = 0


class Grouping:
    """A way to choose the replica of each tuple. Subclass it as a frozen dataclass, and override `spread` or `choose`.

    `spread` is for groupings that only say how many tuples each replica gets: rows are then cut into runs, without a copy.
    `choose` is for those that look at rows. Both run where tuples are sent, in hosts: a class of yours must be importable
    there, or be in the file of the application. CONTRIBUTING.md has a recipe.
    """

    name: ClassVar[str]
    """The name in texts, options and pictures."""

    columns: tuple[str, ...] = ()
    """The columns that the choice reads: a topology checks that the sender has them."""

    needs_columns: ClassVar[bool] = False
    """True: without columns the grouping is refused."""

    even: ClassVar[bool] = False
    """True: every replica gets the same number of tuples, to within one. With bounded queues, senders may then fill all lanes."""

    to_all: ClassVar[bool] = False
    """True: every replica gets every tuple."""

    needs_queued: ClassVar[bool] = False
    """True: `Snapshot.queued` is filled in."""

    simulated_as: ClassVar[SimulatedAs | None] = None
    """The simulator's model of it; None: refused by the simulator."""

    simulated_only: ClassVar[bool] = False
    """True: only a simulated system has it, and the engine refuses it."""

    @property
    def keyed(self) -> bool:
        """True when the columns are a key: keys fall into key groups, lanes own these, and groups move when replicas change."""
        return False

    @property
    def redirects(self) -> bool:
        """True when tuples, or whole key groups, go to other replicas while the load is uneven."""
        return False

    @property
    def load(self) -> LoadMeasure | None:
        """The measure with which `Snapshot.load` and `Snapshot.cost` are filled in; None: they are not."""
        return None

    def spread(self, rows: int, to: Snapshot, turn: int) -> list[int] | None:
        """How many of `rows` tuples each active replica gets; None: `choose` decides for each row."""
        return None

    def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
        """A replica for each row, from 0 to `len(to.active) - 1`."""
        raise NotImplementedError(f"grouping {self}: override spread or choose")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.columns)})" if self.columns else self.name
