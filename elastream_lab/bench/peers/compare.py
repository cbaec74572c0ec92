"""`elastream bench peers`: the same tuples on Elastream, Flink and Storm, one after another, several runs of each."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elastream.errors import RunFailed
from elastream_lab.bench.common.tables import failures, table
from elastream_lab.bench.engine.tweets_load import POOL, SCALE, SERVICE_MS, SPEED, TRACE
from elastream_lab.bench.peers.runs import PeerRun, run_row
from elastream_lab.bench.peers.systems import ROWS, Row, not_fetched, versions

HEAD = (
    "system",
    "latency mean ms",
    "p95 ms",
    "max ms",
    "saved",
    "rescales",
    "longest without output s",
    "lost",
    "doubled",
    "CPU s",
)


@dataclass(frozen=True)
class PeersBench:
    """All runs of all rows that could be measured."""

    seconds: float
    cores: int
    rows: tuple[Row, ...]
    versions: dict[str, str]
    runs: tuple[PeerRun, ...]
    missing: tuple[str, ...]
    """Rows that were not fetched, and how to fetch them."""
    failures: tuple[str, ...]

    @property
    def met(self) -> bool:
        """There are no goals; but what is there has to run."""
        return not self.failures

    def runs_of(self, row: Row) -> list[PeerRun]:
        return [run for run in self.runs if run.name == row.name]

    def to_markdown(self) -> str:
        rows = [figures(found) for row in self.rows if (found := self.runs_of(row))]
        busy, loads = [run.busy_cores for run in self.runs], [run.load for run in self.runs]
        load = (
            f" Before the runs other processes used {min(busy):.1f} to {max(busy):.1f} cores, the load average was "
            f"{min(loads):.1f} to {max(loads):.1f}."
            if busy
            else ""
        )
        named = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        parts = [
            "# Beside other systems",
            f"`elastream bench peers`: {self.seconds:g} s of the trace {TRACE} ({SPEED:g} times its speed, {SCALE:g} times its tuples), four "
            f"operators that wait {SERVICE_MS:g} ms each, at most {POOL} replicas each, on {self.cores} cores; all in local mode. "
            f"{named or 'No other system was fetched'}.{load}",
            table(HEAD, rows) if rows else "",
            *self.missing,
            failures(self.failures),
            "## Settings that are not defaults",
            *(settings_line(row) for row in self.rows),
        ]
        return "\n\n".join(part for part in parts if part)


class StoppedEarly(KeyboardInterrupt):
    """Ctrl-C, and what was measured before it."""

    def __init__(self, result: PeersBench) -> None:
        super().__init__()
        self.result = result


def figures(runs: list[PeerRun]) -> list[str]:
    """A line of the table: every run's figure."""

    def each(words: Callable[[PeerRun], str]) -> str:
        return " / ".join(words(run) for run in runs)

    return [
        runs[0].name,
        each(lambda run: f"{run.counted.latency_mean_ms:,.0f}"),
        each(lambda run: f"{run.counted.latency_p95_ms:,.0f}"),
        each(lambda run: f"{run.counted.latency_max_ms:,.0f}"),
        each(lambda run: f"{run.saved:.2f}"),
        each(lambda run: str(run.rescales)),
        each(lambda run: f"{run.counted.silence_s:.2f}"),
        each(lambda run: f"{run.counted.lost:,}"),
        each(lambda run: f"{run.counted.doubled:,}"),
        each(lambda run: f"{run.cpu_s:.0f}"),
    ]


def settings_line(row: Row) -> str:
    """All settings of a row, as its system knows them."""
    own = ", ".join(f"`{key}: {value}`" for key, value in row.settings.items())
    scaler = ", ".join(f"`{key}: {value}`" for key, value in row.autoscaler.items())
    return f"{row.name}: {own or 'none'}" + (f"; autoscaler: {scaler}" if scaler else "") + "."


def bench_peers(seconds: float, runs: int, peers: Path, say: Callable[[str], None]) -> PeersBench:
    """Round after round, so that a noisy minute does not hit all runs of one row. What was not fetched is left out.

    Ctrl-C ends the run in progress and raises `StoppedEarly`, which has the runs before it.
    """
    missing = tuple(line for row in ROWS if (line := not_fetched(row, peers)))
    for line in missing:
        say(line)
    there = [row for row in ROWS if not_fetched(row, peers) is None]
    for row in there:
        say(settings_line(row))
    found: list[PeerRun] = []
    failed: list[str] = []

    def result() -> PeersBench:
        fetched = {name: version for row in there for name, version in versions(row, peers).items()}
        return PeersBench(seconds, os.cpu_count() or 1, ROWS, fetched, tuple(found), missing, tuple(failed))

    try:
        for number in range(1, runs + 1):
            for row in there:
                say(f"{time.strftime('%H:%M:%S')} {row.name}, run {number} of {runs}: about {seconds + 25:.0f} s")
                try:
                    found.append(run_row(row, number, peers, seconds))
                except RunFailed as error:
                    failed.append(f"{row.name}, run {number}: {error}")
                    say(failed[-1])
    except KeyboardInterrupt:
        failed.append("stopped by Ctrl-C: only the runs before it are here")
        raise StoppedEarly(result()) from None
    return result()
