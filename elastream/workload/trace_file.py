"""Trace files: CSV with the header `t_seconds,events` and a constant step; events are those of the step that begins then."""

import csv
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import numpy as np

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals, paced

HEADER = ["t_seconds", "events"]


def from_csv(path: str | Path, *, speed: float = 1.0, scale: float = 1.0) -> Arrivals:
    """A trace file as a workload; `speed` compresses its time, `scale` multiplies its events."""
    path = Path(path)
    if not path.is_file():
        raise SettingError(f"trace {path}: no such file; name a built-in trace or a CSV with t_seconds,events")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(_lines(file, path))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingError(f"trace {path}: expected a CSV file in UTF-8: {error}") from None
    if not lines:
        raise SettingError(f"trace {path}: no line below the header; it needs at least one step")
    step_s = _check_steps(lines, path)
    times = np.asarray([second for _, second, _ in lines])
    events = np.asarray([count for _, _, count in lines])
    return paced(np.append(times, times[-1] + step_s), events, speed, scale)


def to_csv(arrivals: Arrivals, path: str | Path, step_s: float | None = None) -> None:
    """Write a workload as a trace file, in whole tuples; without `step_s`, in steps that suit its length."""
    step_s = _suitable_step(arrivals) if step_s is None else step_s
    if not 0 < step_s < math.inf:
        raise SettingError(f"step_s must be more than 0 and finite, got {step_s}")
    steps = max(1, math.ceil(arrivals.seconds / step_s - 1e-9))
    due = [arrivals.due_by(number * step_s) for number in range(steps)] + [arrivals.total]
    lines = [",".join(HEADER)]
    lines += [f"{number_word(n * step_s)},{after - before}" for n, (before, after) in enumerate(pairwise(due))]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise SettingError(f"trace {path}: cannot be written: {error.strerror}") from None


def number_word(value: float) -> str:
    """To a millionth, without zeros that say nothing."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _lines(file: TextIO, path: Path) -> Iterator[tuple[int, float, float]]:
    """Number of the line, time and count, each one checked."""
    rows = csv.reader(file)
    header = next(rows, None)
    if header != HEADER:
        raise SettingError(f"trace {path}, line 1: expected t_seconds,events, got {','.join(header or [])!r}")
    before = -math.inf
    blank: int | None = None
    for row in rows:
        number = rows.line_num
        if not row:
            # Blank lines are ignored, but only at the end.
            blank = blank or number
            continue
        if blank is not None:
            raise _error(path, blank, "expected two numbers, got ''")
        try:
            second, count = map(float, row)
        except ValueError:
            raise _error(path, number, f"expected two numbers, got {','.join(row)!r}") from None
        if not math.isfinite(second):
            raise _error(path, number, f"expected a time in seconds, got {second}")
        if not 0 <= count < math.inf:
            raise _error(path, number, f"expected a count of 0 or more, got {count}")
        if second <= before:
            raise _error(path, number, f"time goes from {before} to {second}; sort the trace by t_seconds")
        before = second
        yield number, second, count


def _check_steps(lines: list[tuple[int, float, float]], path: Path) -> float:
    """The step; a trace in which it is not the same everywhere is refused, for then something is missing."""
    if len(lines) == 1:
        return 1.0
    gaps = sorted(after - before for (_, before, _), (_, after, _) in pairwise(lines))
    # The lower one of two in the middle: a gap is longer than the step, never shorter.
    step_s = gaps[(len(gaps) - 1) // 2]
    for (_, before, _), (number, after, _) in pairwise(lines):
        steps = (after - before) / step_s
        if abs(steps - 1) <= 1e-3:
            continue
        if steps > 1 and abs(steps - round(steps)) <= 1e-3:
            missing = round(steps) - 1
            raise _error(
                path,
                number,
                f"gap: time goes from {before:g} to {after:g} in steps of {step_s:g} s, {missing} "
                f"{'line is' if missing == 1 else 'lines are'} missing; add {_said(before, step_s, missing)} with 0 events "
                "if nothing came",
            )
        raise _error(
            path,
            number,
            f"time goes from {before:g} to {after:g}, expected a step of {step_s:g} s as elsewhere; keep the step constant",
        )
    return step_s


def _said(before: float, step_s: float, missing: int) -> str:
    first, last = number_word(before + step_s), number_word(before + missing * step_s)
    return f"t_seconds {first}" if missing == 1 else f"t_seconds {first} to {last}"


def _suitable_step(arrivals: Arrivals) -> float:
    """The workload's own step if there is one that can be written down, else a round one that gives about 1000 lines."""
    own = np.diff(arrivals.ends_s)
    step_s = float(own[0])
    if len(own) > 1 and np.ptp(own) < 1e-9 * arrivals.seconds and round(step_s, 6) == step_s:
        return step_s
    rough = arrivals.seconds / 1000
    power = 10.0 ** math.floor(math.log10(rough))
    return max(step for step in (power, 2 * power, 5 * power) if step <= rough * (1 + 1e-9))


def _error(path: Path, number: int, problem: str) -> SettingError:
    return SettingError(f"trace {path}, line {number}: {problem}")
