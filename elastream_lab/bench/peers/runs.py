"""One run of one row: a system is started, given the workload, watched, ended and counted."""

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from elastream.errors import RunFailed
from elastream_lab.bench.common.isolate import busy_cores, run_part
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.engine.tweets_load import POOL, tweet_arrivals
from elastream_lab.bench.peers.flink import flink_run
from elastream_lab.bench.peers.outputs import Counted, count_lines, origin_us, read_lines, write_schedule
from elastream_lab.bench.peers.replicas import Change, rescales, saved
from elastream_lab.bench.peers.storm import storm_run
from elastream_lab.bench.peers.systems import Row
from elastream_lab.bench.peers.watching import LATE_S, START_S, watch


@dataclass(frozen=True)
class PeerRun:
    """The figures of one run."""

    name: str
    number: int
    counted: Counted
    saved: float
    """Against a whole pool of each operator."""
    rescales: int
    """Moments at which the replicas of some operator changed."""
    cpu_s: float
    """Of all its processes, while tuples were due."""
    changes: tuple[Change, ...]
    busy_cores: float
    """What other processes used just before it."""
    load: float
    """The load average of the minute before it."""


def run_row(row: Row, number: int, peers: Path, seconds: float) -> PeerRun:
    """All that it leaves behind is what it measured."""
    arrivals = tweet_arrivals(seconds)
    seconds = arrivals.seconds
    busy, load = round(busy_cores(2.0), 2), round(os.getloadavg()[0], 1)
    with TemporaryDirectory(prefix="elastream-peers-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_schedule(arrivals, folder)
        if row.system == "elastream":
            changes, used_s = _own(row, folder, seconds)
        elif row.system == "flink":
            with flink_run(row, peers, folder) as flink:
                changes, used_s = watch(flink, folder, arrivals.total, seconds)
        else:
            with storm_run(row, peers, folder, seconds) as storm:
                changes, used_s = watch(storm, folder, arrivals.total, seconds)
        began_us = origin_us(folder)
        if began_us is None:
            raise RunFailed(f"bench peers: {row.name} ended before it began")
        counted = count_lines(read_lines(folder), arrivals.total, began_us)
    return PeerRun(
        row.name,
        number,
        counted,
        saved(changes, seconds, POOL),
        rescales(changes, seconds),
        used_s,
        tuple(changes),
        busy,
        load,
    )


def _own(row: Row, folder: Path, seconds: float) -> tuple[list[Change], float]:
    settings: dict[str, object] = dict(row.settings)
    if "td_s" in settings:
        settings["td_s"] = float(row.settings["td_s"])
    part = Part("peers", row.name, {"folder": str(folder), "seconds": seconds, **settings}, START_S + seconds + LATE_S)
    found = run_part(part)
    return [(at_s, replicas) for at_s, replicas in found["changes"]], found["cpu_s"]
