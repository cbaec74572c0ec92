"""`elastream bench engine`: every part in its turn, each in a process of its own; the figures leave, and the report."""

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyspark

from elastream.bench.floor import Floor
from elastream.bench.footprint import Footprint
from elastream.bench.isolate import busy_cores, run_parts
from elastream.bench.plot import draw_bench
from elastream.bench.rescale import Rescale, Restart
from elastream.bench.results import EngineBench, Goal, Machine
from elastream.bench.schedule import Part, schedule
from elastream.bench.throughput import Sustained, Throughput
from elastream.bench.ticks import TickTimes

__all__ = ["EngineBench", "Goal", "bench_engine"]

T = TypeVar("T")

KINDS: dict[str, type[Any]] = {
    "floor": Floor,
    "ticks": TickTimes,
    "throughput": Throughput,
    "plain": Throughput,
    "sustained": Sustained,
    "rescale": Rescale,
    "restart": Restart,
    "footprint": Footprint,
}


def bench_engine(report: Path | None, quick: bool, say: Callable[[str], None]) -> EngineBench:
    """Measure everything; with `report`, write engine.json, engine.md and engine.png there."""
    if report is not None:
        # An unusable directory is better found now than in ten minutes.
        report.mkdir(parents=True, exist_ok=True)
    cores = os.cpu_count() or 1
    began = time.monotonic()
    results, busy = _measure(schedule(quick, cores), say)
    bench = EngineBench(
        quick,
        time.monotonic() - began,
        Machine(cores, _memory_gb(), platform.python_version(), pyspark.__version__, tuple(busy)),
        _of(Floor, results),
        _of(TickTimes, results),
        _of(Throughput, results),
        _of(Sustained, results)[0],
        _of(Rescale, results),
        _of(Restart, results),
        _of(Footprint, results),
    )
    if report is not None:
        (report / "engine.json").write_text(json.dumps(bench.to_json(), indent=1) + "\n", encoding="utf-8")
        (report / "engine.md").write_text(bench.to_markdown(), encoding="utf-8")
        draw_bench(bench, report / "engine.png")
        say(f"report written to {report}")
    return bench


def _measure(groups: list[list[Part]], say: Callable[[str], None]) -> tuple[list[Any], list[float]]:
    """One part after another; what is left is estimated from how the parts so far compare with what was expected."""
    parts = [part for group in groups for part in group]
    results: list[Any] = []
    busy: list[float] = []
    began = time.monotonic()

    def announce() -> None:
        done, left = parts[: len(results)], parts[len(results) :]
        if left:
            pace = (time.monotonic() - began) / sum(part.expected_s for part in done) if done else 1.0
            seconds = pace * sum(part.expected_s for part in left)
            say(f"part {len(done) + 1} of {len(parts)}: {left[0].label}; about {_duration(seconds)} left")

    announce()
    for group in groups:
        busy.append(round(busy_cores(), 2))
        for document in run_parts(group):
            kind = KINDS[parts[len(results)].name]
            results.append(kind(**{name: _frozen(value) for name, value in document.items()}))
            announce()
    return results, busy


def _of(kind: type[T], results: list[Any]) -> tuple[T, ...]:
    return tuple(result for result in results if isinstance(result, kind))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _memory_gb() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
