"""The parts of a graph, frozen: operators, the replicas they may have, the edges between them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

import pyarrow as pa

from elastream.topology.groupings import Grouping
from elastream.topology.ports import SinkSpec, SourceSpec

OperatorName = NewType("OperatorName", str)

LARGEST_POOL = 1024
"""More lanes than this for one operator is a typing error, not a deployment."""

IDLE_S = 5.0
"""The default of `idle_s`: longer than pauses of a healthy source, short beside the time for which people watch a silent one."""


class Kind(StrEnum):
    """What an operator's function takes and gives."""

    SOURCE = "source"
    MAP = "map"
    FLAT_MAP = "flat_map"
    FILTER = "filter"
    BATCH = "batch"
    PANDAS = "pandas"
    DATAFRAME = "dataframe"
    KEYED = "keyed"
    KEYED_BATCH = "keyed_batch"
    KEYED_PANDAS = "keyed_pandas"
    SINK = "sink"
    OUTPUT = "output"

    @property
    def ends_the_graph(self) -> bool:
        return self in (Kind.SINK, Kind.OUTPUT)


@dataclass(frozen=True)
class KeyedState:
    """What a keyed operator remembers of every key."""

    key: tuple[str, ...]
    schema: pa.Schema
    initial: dict[str, Any] = field(default_factory=dict)
    """What columns are for a key that comes for the first time; the others are None."""

    ttl_s: float | None = None
    """A key that has not changed for so long is forgotten; None: never."""

    on_timer: Callable[..., Any] | None = None
    """Called when a time comes that a key was to be woken at."""

    event_time: str | None = None
    """The column that says when a tuple happened: the watermark follows it."""

    lateness_s: float = 0.0
    """By how much the watermark stays behind the newest tuple."""

    drop_late: bool = False
    """True: a tuple that happened before the watermark is dropped, and counted as late."""

    idle_s: float = IDLE_S
    """An input that gave nothing for this long does not hold back the watermark."""

    merge: Callable[..., Any] | None = None
    """Takes a part of a key's state into the state, so that a key may be split over replicas."""


@dataclass(frozen=True)
class Replicas:
    """How many replicas an operator may have, and with how many it starts."""

    least: int
    most: int
    start: int

    def __str__(self) -> str:
        return str(self.start) if self.least == self.most else f"{self.start} of {self.least}..{self.most}"


@dataclass(frozen=True)
class Operator:
    """One vertex of the graph."""

    name: OperatorName
    kind: Kind
    function: Callable[..., Any] | None
    """What runs on each row or batch; a source has its spec instead, a sink that Spark writes its writer, an output nothing."""

    schema: pa.Schema
    """The columns that leave it; for a sink or an output, those that enter."""

    replicas: Replicas
    chained: bool = False
    """True when it runs inside the task of its predecessor and has no lanes of its own."""

    waits: bool = False
    """True when it mostly waits for others: its replicas may then share a process, side by side in threads."""

    source: SourceSpec | None = None
    """A source's spec: see `elastream.sources`."""

    writer: SinkSpec | None = None
    """How Spark writes a sink that has no function: see `elastream.sinks`."""

    updates: bool = False
    """Of a dataframe operator: True when it gives a row again whenever it changes, not once when it is final."""

    keyed: KeyedState | None = None
    """Of a keyed operator: what it remembers."""

    @property
    def by_spark(self) -> bool:
        """True when Spark itself serves what waits in the lanes, and not a task of ours."""
        return self.kind is Kind.DATAFRAME or self.writer is not None


@dataclass(frozen=True)
class Edge:
    """Tuples of `source` go to `target`, shared out by `grouping`."""

    source: OperatorName
    target: OperatorName
    grouping: Grouping
