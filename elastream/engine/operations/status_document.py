"""The status document: a run as its driver describes it in the base, for viewers in other processes.

The driver writes it every second or so, whole. It holds one row per operator and a bounded number of lines, and never grows.
"""

import time
from typing import Any, Literal

import msgspec

from elastream.errors import Damaged
from elastream.lanes.lease import ThisMachine
from elastream.lanes.store import Store

FILE = "status.json"

VERSION = 1

MAX_TEXT = 400
"""Characters of one line in the document."""

ATTEMPTS = 3
"""To read a document that another process replaces."""

SILENT_S = 15.0
"""A driver that has written nothing for this long, and several of its intervals, is silent: it hangs, or is gone."""


class Line(msgspec.Struct, frozen=True):
    """An event, in words."""

    at_s: float
    """Wall time."""
    kind: str
    """rescale, alert, fleet, redirect, move, error, warning or request."""
    words: str


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One operator. Rates are means over the last seconds, counts are of this run."""

    name: str
    role: str
    replicas: int
    min: int
    max: int
    queued: int
    """Tuples that wait. For a source: that are there and not read, its lag. For an output: rows kept for readers."""
    in_per_s: float
    out_per_s: float
    wait_s: float
    """Estimated time that a tuple waits in the queue."""
    service_s: float
    busy: float
    """Share of its replicas' time; 1 if tuples wait for a second or longer."""
    load: float | None = None
    """The fullest lane: 1 is a full queue."""
    balance: float | None = None
    """How uneven the lanes are; 0 is even."""
    dropped: int = 0
    late: int = 0
    dead_letters: int = 0
    wanted: int | None = None
    """Replicas that the policy wants, if guards do not allow them."""
    watermark_s: float | None = None
    """Event time up to which rows are complete, in seconds since 1970; None if it has none."""
    lag: dict[str, int] = {}
    """Of a source in parts, such as partitions of a topic: unread tuples, the largest first."""


class LevelRow(msgspec.Struct, frozen=True, kw_only=True):
    """Seats, hosts or executors."""

    level: str
    there: int
    planned: int
    max: int
    problem: str = ""


class StatusDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment."""

    version: int = VERSION
    run: str
    """An identity that no other run has."""
    name: str
    policy: str
    base: str
    host: str
    pid: int
    process: list[str]
    """The process among all of its machine; empty if that is not known."""
    every_s: float
    """Seconds between two documents."""
    written_s: float
    started_s: float
    phase: str
    """starting, running, draining, stopping or over."""
    stage: str = ""
    error: str = ""
    """The error that ended the run."""
    entry: int = -1
    seconds: float = 0.0
    """The time over which rates are means."""
    tick_ms: float = 0.0
    in_per_s: float = 0.0
    out_per_s: float = 0.0
    queued: int = 0
    latency_mean_s: float = 0.0
    latency_p95_s: float = 0.0
    read: int = 0
    """Tuples that sources read in this run."""
    dropped: int = 0
    late: int = 0
    dead_letters: int = 0
    verdict: str = ""
    operators: tuple[OperatorRow, ...] = ()
    levels: tuple[LevelRow, ...] = ()
    lines: tuple[Line, ...] = ()
    """The newest events, the oldest first."""
    vetoes: tuple[str, ...] = ()
    """Wishes of the policy that guards refused in the last interval."""
    failures: tuple[str, ...] = ()
    """The first failure of each operator and kind of error, the newest ones."""
    overdue: tuple[str, ...] = ()
    """Works that take long."""
    search: dict[str, Any] | None = None
    """The newest step of a policy that searches."""
    log: str = ""
    """The log file; empty if there is none."""

    @property
    def is_over(self) -> bool:
        return self.phase == "over"


def write_status(store: Store, document: StatusDocument) -> None:
    store.write(FILE, msgspec.json.encode(document))


def read_status(store: Store) -> StatusDocument | None:
    """None if no run has written one.

    On an object store a reader may get the size of one document and the bytes of the next: what cannot be read is read again.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _decoded(store.read(FILE), f"{store}/{FILE}")
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            problem = error
            if attempt < ATTEMPTS - 1:
                time.sleep(0.05)
    raise Damaged(f"{store}/{FILE}: no status of a run: {problem}; a running driver writes it anew every few seconds")


def _decoded(data: bytes, where: str) -> StatusDocument:
    version = msgspec.json.decode(data, type=_Version).version
    if version != VERSION:
        raise Damaged(f"{where}: version {version}, this Elastream reads {VERSION}; use the version that runs there")
    return msgspec.json.decode(data, type=StatusDocument)


class _Version(msgspec.Struct):
    version: int


class Liveness(msgspec.Struct, frozen=True):
    """Whether a driver runs, and the sentence that says so."""

    state: Literal["running", "over", "failed", "gone", "silent"]
    words: str

    @property
    def is_running(self) -> bool:
        return self.state == "running"


def liveness(document: StatusDocument, now_s: float) -> Liveness:
    """Judged by the process, if it is one of this machine, else by the age of the document."""
    age_s = max(0.0, now_s - document.written_s)
    driver = f"the driver, process {document.pid} on {document.host}"
    ago = f"{age(age_s)} ago"
    if document.error:
        return Liveness("failed", f"the last run failed {ago}: {document.error}")
    if document.is_over:
        return Liveness("over", f"no driver runs; the last run ended {ago}")
    alive = ThisMachine().is_alive(document.process or None)
    if alive is False:
        words = f"{driver}, is gone: killed, or its machine failed; its last status is {age(age_s)} old"
        return Liveness("gone", f"no driver runs: {words}")
    if age_s > max(SILENT_S, 5 * document.every_s):
        hint = "it hangs, or its storage does" if alive else "it hangs, is gone, or the clocks differ"
        return Liveness("silent", f"{driver}, has written nothing for {age(age_s)}; {hint}")
    return Liveness("running", f"{driver}, runs")


def age(seconds: float) -> str:
    """A length of time in its largest unit: 4 s, 12 min, 3 h, 2 days."""
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def shortened(words: str) -> str:
    """One line of at most `MAX_TEXT` characters."""
    line = " ".join(words.splitlines())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"
