"""What a queued tuple costs, on disk and in the driver's memory, beside the bytes of the tuple itself."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from elastream.engine.driver.ports import Tick
from elastream.lanes import Store
from elastream.lanes.cleanup import GRACE_S
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import decode_schema
from elastream.workload import Arrivals
from elastream_lab.bench.common.watch import OPERATORS, Watched, four_operators, watched
from elastream_lab.bench.common.work import nothing, sink_crawl


@dataclass(frozen=True)
class Footprint:
    """A backlog in front of a slow operator."""

    per_second: float
    """How fast the backlog came: the faster, the more tuples share a slice."""
    lanes: int
    """In front of the slow operator."""
    queued: int
    slices: int
    """Pieces of segments that the backlog is in: the driver remembers these, not tuples."""
    segment_bytes: int
    ledger_bytes: int
    driver_bytes: int
    """How much the driver's process grew while the backlog did."""
    payload_bytes: int
    """The backlog in Arrow: ids and due times."""


def measure_footprint(tuples: int, per_second: float, replicas: int, quiet_s: float) -> Footprint:
    """Let a backlog grow, wait until consumed segments are cleaned up, then look.

    A slow start comes first, so that the memory before the backlog is that of a run that is going on.
    """
    burst_s = tuples / per_second
    arrivals = Arrivals((0.0, quiet_s, quiet_s + burst_s), (0.0, quiet_s * 100, quiet_s * 100 + tuples))
    # A lane of the sink serves 50 tuples a second; the other operators as many as come.
    graph = four_operators(arrivals, nothing, sink_crawl, replicas=replicas)
    with watched(graph) as run:
        origin_s = run.origin_s()
        time.sleep(max(0.0, origin_s + quiet_s - 0.5 - time.time()))
        before_bytes = _resident_bytes()
        run.wait(lambda: _has_arrived(run, arrivals.total), burst_s * 5 + 120, "all tuples to wait for the sink")
        time.sleep(GRACE_S + 1)
        seen: list[Footprint] = []

        def look(tick: Tick) -> None:
            if not seen:
                seen.append(_look(run, tick, per_second, replicas, before_bytes))

        run.handle.subscribe(look)
        run.wait(lambda: bool(seen), 60, "a tick to look at")
    return seen[0]


def _has_arrived(run: Watched, total: int) -> bool:
    """True when everything has entered and only the slow operator has tuples left."""
    waiting = [run.ticks[-1].queued[name] for name in OPERATORS[:3]] if run.ticks else [1]
    return int(run.handle.status.sources["in"]["next"]) >= total and not any(waiting)


def _look(run: Watched, tick: Tick, per_second: float, replicas: int, before_bytes: int) -> Footprint:
    grown = _resident_bytes() - before_bytes
    store = Store(run.handle.base)
    book = LedgerReader(store).refresh()
    slices = [piece for queue in book.lanes.values() for piece in queue.slices]
    schemas = {key: decode_schema(text) for key, text in book.schemas.items()}
    reader = SegmentReader(store)
    payload = sum(reader.read(piece, schemas[piece.schema]).nbytes for piece in slices)
    reader.close()
    return Footprint(
        per_second,
        replicas,
        sum(tick.queued.values()),
        len(slices),
        _bytes_under(run.base / "segments"),
        _bytes_under(run.base / "ledger"),
        grown,
        payload,
    )


def _bytes_under(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def _resident_bytes() -> int:
    """The memory of this process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found.group(1)) * 1024 if found else 0
