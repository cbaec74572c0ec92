"""The folder of one run: the schedule of tuples goes in, the lines that the last operator wrote are counted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elastream.errors import RunFailed
from elastream.workload import Arrivals

Micros = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Counted:
    """The tuples that came out of a run; of a tuple that came twice, the first time counts."""

    latency_mean_ms: float
    latency_p95_ms: float
    latency_max_ms: float
    silence_s: float
    """The longest time without output, between the first tuple and the last."""
    lost: int
    """Not there when the run was ended."""
    doubled: int
    """Lines beyond one for each tuple."""
    latency_line_ms: tuple[tuple[float, float], ...]
    """By second: the mean latency of the tuples that were due in it."""
    silences_s: tuple[tuple[float, float], ...]
    """By second: the longest time without output that ended in it."""


def due_us(arrivals: Arrivals, first: int, stop: int) -> Micros:
    """When tuples `first` to `stop - 1` are due, in microseconds after the beginning."""
    return np.round(arrivals.due_times(first, stop) * 1e6).astype(np.int64)


def write_schedule(arrivals: Arrivals, folder: Path) -> None:
    """One line per tuple: microseconds after the beginning at which it is due."""
    text = "".join(f"{us}\n" for us in due_us(arrivals, 0, arrivals.total))
    (folder / "schedule").write_text(text, encoding="utf-8")


def origin_us(folder: Path) -> int | None:
    """When the run began, in microseconds since 1970; None when it has not."""
    file = folder / "origin"
    return int(file.read_text(encoding="utf-8")) if file.exists() else None


def read_lines(folder: Path) -> Micros:
    """Rows of (number, due, out), in no order: due since the run began, out since 1970, in microseconds.

    A line that a replica was ended in the middle of is none.
    """
    rows = [
        [int(word) for word in line.split(",")]
        for file in folder.glob("out-*")
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def distinct(lines: Micros) -> int:
    """How many tuples have come out."""
    return len(np.unique(lines[:, 0]))


def count_lines(lines: Micros, total: int, began_us: int) -> Counted:
    """Of `total` tuples that were due since `began_us`."""
    if not len(lines):
        raise RunFailed(f"bench peers: expected {total:,} tuples at the last operator, got none")
    lines = lines[np.argsort(lines[:, 2], kind="stable")]
    out_s = (lines[:, 2] - began_us) / 1e6
    _, first = np.unique(lines[:, 0], return_index=True)
    latency_ms = (lines[first, 2] - began_us - lines[first, 1]) / 1e3
    due_s = lines[first, 1] / 1e6
    gaps_s = np.diff(out_s, prepend=out_s[0])
    return Counted(
        float(latency_ms.mean()),
        float(np.percentile(latency_ms, 95)),
        float(latency_ms.max()),
        float(gaps_s.max()),
        total - len(first),
        len(lines) - len(first),
        _by_second(due_s, latency_ms, np.mean),
        _by_second(out_s, gaps_s, np.max),
    )


def _by_second(at_s: Floats, values: Floats, of: Callable[[Floats], float]) -> tuple[tuple[float, float], ...]:
    seconds = np.floor(at_s).astype(int)
    return tuple((float(second), float(of(values[seconds == second]))) for second in np.unique(seconds))
