"""`elastream bench engine`: every part in its turn, each in a process of its own; the figures leave, and the report."""

import os
import platform
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pyspark

from elastream.errors import RunFailed
from elastream_lab.bench.common.isolate import busy_cores, run_parts
from elastream_lab.bench.common.schedule import Part, schedule
from elastream_lab.bench.engine.busy import Busy
from elastream_lab.bench.engine.floor import Floor
from elastream_lab.bench.engine.footprint import Footprint
from elastream_lab.bench.engine.rescale import Rescale, Restart
from elastream_lab.bench.engine.results import EngineBench, Goal, Machine
from elastream_lab.bench.engine.start import Start
from elastream_lab.bench.engine.throughput import Sustained, Throughput
from elastream_lab.bench.engine.ticks import TickTimes
from elastream_lab.bench.engine.tweets import TweetsRun

__all__ = ["EngineBench", "Goal", "bench_engine"]

T = TypeVar("T")

KINDS: dict[str, type[Any]] = {
    "floor": Floor,
    "ticks": TickTimes,
    "throughput": Throughput,
    "plain": Throughput,
    "sustained": Sustained,
    "rescale": Rescale,
    "busy": Busy,
    "start": Start,
    "tweets": TweetsRun,
    "restart": Restart,
    "footprint": Footprint,
}


def bench_engine(quick: bool, say: Callable[[str], None]) -> EngineBench:
    """Measure everything."""
    cores = os.cpu_count() or 1
    began = time.monotonic()
    results, busy, failures = _measure(schedule(quick, cores), say)
    return EngineBench(
        quick,
        time.monotonic() - began,
        Machine(cores, _memory_gb(), platform.python_version(), pyspark.__version__, tuple(busy)),
        _of(Floor, results),
        _of(TickTimes, results),
        _of(Throughput, results),
        next(iter(_of(Sustained, results)), None),
        _of(Rescale, results),
        _of(Restart, results),
        _of(Footprint, results),
        _of(Busy, results),
        _of(Start, results),
        next(iter(_of(TweetsRun, results)), None),
        tuple(failures),
    )


def _measure(groups: list[list[Part]], say: Callable[[str], None]) -> tuple[list[Any], list[float], list[str]]:
    """One part after another: results, busy cores before each process, and why parts failed; the others go on."""
    progress = _Progress([part for group in groups for part in group], say)
    results: list[Any] = []
    busy: list[float] = []
    failures: list[str] = []
    for group in groups:
        busy.append(round(busy_cores(), 2))
        waiting = list(group)
        progress.begin(waiting[0])
        try:
            for document in run_parts(group):
                kind = KINDS[waiting.pop(0).name]
                results.append(kind(**{name: _frozen(value) for name, value in document.items()}))
                if waiting:
                    progress.begin(waiting[0])
        except RunFailed as error:
            # What should have followed in the same process is lost with it.
            failures += [str(error), *(f"bench, {part.label}: not begun" for part in waiting[1:])]
            say(str(error))
    return results, busy, failures


class _Progress:
    """Says which part comes, and how long the rest will take if it compares with what was expected as the parts so far."""

    def __init__(self, parts: list[Part], say: Callable[[str], None]) -> None:
        self._parts = parts
        self._say = say
        self._began = time.monotonic()

    def begin(self, part: Part) -> None:
        number = next(place for place, known in enumerate(self._parts) if known is part)
        done_s = sum(part.expected_s for part in self._parts[:number])
        pace = (time.monotonic() - self._began) / done_s if done_s else 1.0
        left_s = pace * sum(part.expected_s for part in self._parts[number:])
        self._say(f"part {number + 1} of {len(self._parts)}: {part.label}; about {_duration(left_s)} left")


def _of(kind: type[T], results: list[Any]) -> tuple[T, ...]:
    return tuple(result for result in results if isinstance(result, kind))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _memory_gb() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
