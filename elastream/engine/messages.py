"""Messages between the driver and hosts: typed, checked when they are read, MessagePack on the wire.

The driver says `Welcome` once, then `Routing` whenever lanes are switched on or off, and `Works`. A host says `Ready` once and
then `Receipts`. The same works and receipts travel between the driver and the tasks of the edges.
"""

from typing import Any, NamedTuple

import msgspec

from elastream import errors
from elastream.errors import ElastreamError
from elastream.lanes.entries import GroupWhole, StateChange
from elastream.lanes.segments import Appended, SchemaId, Slice
from elastream.lanes.state_log import Change

VERSION = 9
"""Both sides are of one installation, but a cluster may have an old one on some machine."""


class Loads(NamedTuple):
    """For an edge that is routed by load: that of each active lane, and what a tuple adds to it."""

    grouping: str
    target: str
    load: list[float]
    cost: float


class LaneRows(NamedTuple):
    """Tuples at the head of one lane."""

    lane: int
    first: int
    """How many tuples of the lane were consumed before them."""
    slices: list[Slice]
    groups: tuple[int, ...] = ()
    """The key groups of the lane, where keys are woken or may be split."""


class ServeWork(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="serve"):
    """Serve these tuples of some lanes of one operator, one lane after another."""

    id: int
    operator: str
    lanes: list[LaneRows]
    planned_s: float
    budget_s: float
    """The clock ends the work after this long, at the end of a chunk; 0: it does not."""
    chunk: int
    """How many tuples to serve between two looks at the clock, to begin with."""
    computes: bool
    """True: one such work at a time in a host. False: in a thread of its own, beside all others."""
    turn: int
    """Where dealing out begins: a number that differs from work to work."""
    t_out_s: float | None = None
    queued: dict[str, list[int]] = {}
    """Per target that wants to know, how many tuples wait in its active lanes."""
    loads: list[Loads] = []
    watermark_s: float | None = None
    """Of a keyed operator with event times: nothing that happened before is expected any more. None: it is not known yet."""
    proven: bool = False
    """True if the operator has given what it declared before: what it gives otherwise now is the fault of a tuple."""
    wakes: bool = True
    """True: then wake the keys of these lanes whose time has come. False: a tuple or a key is suspected, and keys have their turn later."""


class WakeWork(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="wake"):
    """Wake some keys of a lane whose time has come, the earliest first, and serve no tuple."""

    id: int
    operator: str
    lane: int
    groups: tuple[int, ...]
    clock_s: float
    """Keys whose time has come by then, by the clock or by the watermark."""
    watermark_s: float | None
    keys: int
    """How many."""
    computes: bool
    turn: int
    queued: dict[str, list[int]] = {}
    loads: list[Loads] = []


class BuryTuples(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="bury"):
    """Put these tuples into the dead letters without serving them."""

    id: int
    operator: str
    lane: LaneRows
    planned_s: float
    error: str


class BuryTimer(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="bury timer"):
    """Put the first key of a lane whose time has come into the dead letters without waking it."""

    id: int
    operator: str
    lane: int
    groups: tuple[int, ...]
    clock_s: float
    watermark_s: float | None
    error: str


LaneWork = ServeWork | WakeWork | BuryTuples | BuryTimer
"""Works of lanes: one purpose each."""


class SourceWork(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="source"):
    """Make the tuples `first` to `stop - 1` of a replay."""

    id: int
    source: str
    part: int
    first: int
    stop: int
    origin_s: float
    ends_s: list[float]
    """The part of the workload in which these tuples are: where its steps end, and how many tuples are due by then."""
    counts: list[float]
    turn: int
    queued: dict[str, list[int]] = {}
    loads: list[Loads] = []


class TimeWork(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="time"):
    """Time the operators with a few tuples of the sources, and throw away what they make."""

    id: int
    totals: dict[str, int]
    """How many tuples each replay has."""
    seconds: float


class GroupSince(NamedTuple):
    """A key group of which a host shall know the state."""

    group: int
    since: int
    """The number of the first change that it does not know."""
    anew: bool
    """True: what it knows of the group is worth nothing; it begins with the whole."""


class SyncWork(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="sync"):
    """Learn the states of some key groups: those written whole first, then what changed since."""

    id: int
    operator: str
    groups: list[GroupSince]
    wholes: list[Slice]
    changes: list[Change]
    forget: list[int] = []
    """Key groups of which nothing need be known any more."""
    measure: bool = False
    """True: say what the groups amount to when all is known."""


class WholeWork(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="whole"):
    """Say what some key groups amount to, and write them whole."""

    id: int
    operator: str
    groups: list[int]
    write: bool


Work = LaneWork | SourceWork | TimeWork | SyncWork | WholeWork


class Routing(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="routing"):
    """How many lanes of each operator receive: lanes 0 to that number; and which lane owns each key group, where keys choose."""

    sizes: dict[str, int] = {}
    owners: dict[str, list[int]] = {}
    splits: dict[str, dict[int, list[int]]] = {}
    """Per operator, keys by their hash that are dealt out to several key groups."""


class Works(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="works"):
    """What a host shall do next, in this order where works share a seat."""

    works: list[Work]


class Welcome(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="welcome"):
    """The driver takes a host on."""

    schemas: dict[SchemaId, str]
    """Those that slices may name."""


class Chairs(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="chairs"):
    """Have so many seats for works that wait; the answer is a `Usage` that says so."""

    seats: int


class End(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="end"):
    """No work will come any more."""


ToHost = Routing | Works | Welcome | Chairs | End


class LaneReceipt(msgspec.Struct, array_like=True, gc=False):
    """What one operator did with the tuples of one lane. Chained operators have one each, on their head's lane."""

    operator: str
    lane: int
    consumed: int = 0
    """Tuples taken from the lane; 0 for sources and chained operators."""
    processed: int = 0
    emitted: int = 0
    """Tuples that left the function."""
    failed: int = 0
    late: int = 0
    finished: int = 0
    busy_s: float = 0.0
    cpu_s: float = 0.0
    event_s: float | None = None
    """When the newest of the tuples happened, where they say so."""
    timers: tuple[float | None, float | None] | None = None
    """When a key of the lane is to be woken next, by the clock and by the watermark; None when that was not looked at."""
    hot: list[tuple[int, int]] = []
    """Keys that were much of what was served, where keys may be split: their hash, and how many tuples."""
    events: dict[tuple[str, str], float] = {}
    """Per time column that begins at this operator and origin of the rows that left, when the newest of them happened."""
    origin: str = ""
    """Of a source: itself and the part of it from which the rows are."""


class SourceReceipt(NamedTuple):
    """How far a replay has been read."""

    source: str
    part: int
    first: int
    stop: int


class LatencyCounts(NamedTuple):
    """Latencies of the tuples that finished: counts by bucket, and the exact sum and maximum."""

    buckets: dict[int, int]
    sum_s: float
    max_s: float


class Problem(NamedTuple):
    """Why nothing came of a work: a type from `elastream.errors`, and its message."""

    kind: str
    message: str


class FailureNote(NamedTuple):
    """One tuple of several that an operator failed on in the same way."""

    operator: str
    lane: int
    error: str
    """The type, the message and the line of the user's code."""
    row: str
    """As JSON."""


class GroupFacts(NamedTuple):
    """What a key group amounts to in a host."""

    group: int
    keys: int
    size: int
    checksum: int


class Receipt(msgspec.Struct, array_like=True, gc=False):
    """What one work did. Nothing of it counts until the driver commits it."""

    work: int
    operators: list[LaneReceipt] = []
    sources: list[SourceReceipt] = []
    appended: list[Appended] = []
    latencies: LatencyCounts | None = None
    memories: dict[str, dict[str, Any]] = {}
    """Per streaming source whose rows may come again, which of them came."""
    timed: dict[str, float] | None = None
    """The answer to `TimeWork`: seconds per tuple."""
    problem: Problem | None = None
    changes: list[StateChange] = []
    wholes: list[GroupWhole] = []
    facts: list[GroupFacts] = []
    failures: list[FailureNote] = []
    """The first tuple set aside of each operator and kind of error."""

    @property
    def head(self) -> str:
        """The operator whose chain this was."""
        return self.operators[0].operator if self.operators else ""


class Receipts(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="receipts"):
    """Works that are done, and segment files that the host has ended."""

    receipts: list[Receipt]
    ended: list[str] = []


class Usage(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="usage"):
    """What a host and its machine use, now and then and after a change of its seats."""

    memory_bytes: int
    """That the process holds."""
    machine_cpu: float
    """The share of the machine's cores that was in use, by whatever runs there."""
    machine_memory: float
    """The share of its memory that is in use."""
    seats: int
    """For works that wait; 0: as many as there are works."""


class Ready(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="ready"):
    """A host begins. A process that is started again has another incarnation."""

    host: int
    incarnation: str
    pid: int
    machine: str
    executor: str = ""
    """Which of the executors on its machine it belongs to."""
    version: int = VERSION


ToDriver = Ready | Receipts | Usage

encode = msgspec.msgpack.Encoder().encode
decode_to_host = msgspec.msgpack.Decoder(ToHost).decode
decode_receipt = msgspec.msgpack.Decoder(Receipt).decode
_decode_to_driver = msgspec.msgpack.Decoder(ToDriver).decode


def decode_to_driver(data: bytes) -> ToDriver:
    """Raises `msgspec.DecodeError` with one line, also where msgspec lets another error through."""
    try:
        message: ToDriver = _decode_to_driver(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(" ".join(str(error).split())) from None
    return message


_KINDS = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ElastreamError)
}


def problem_of(error: ElastreamError) -> Problem:
    # Half of a character, which a user's error may hold, cannot be sent.
    return Problem(type(error).__name__, str(error).encode("utf-8", "backslashreplace").decode())


def error_of(problem: Problem) -> ElastreamError:
    """The error that a work met, to be raised in the driver."""
    return _KINDS.get(problem.kind, ElastreamError)(problem.message)
