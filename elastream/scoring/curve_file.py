"""Any system's curve from a plain CSV file with the columns t_s, input and queued."""

import csv
import math
from pathlib import Path

import numpy as np

from elastream.errors import SettingError
from elastream.scoring.adaptability import Curve, make_curve

LONGEST_S = 100 * 86400.0

HEADER = ["t_s", "input", "queued"]


def read_curve(path: Path) -> Curve:
    """`input` are the events that came in since the line before; times need not be even."""
    rows: list[tuple[float, float, float]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            header = [cell.strip() for cell in next(lines, [])]
            if header != HEADER:
                raise SettingError(f"{path}, line 1: expected {','.join(HEADER)}, got {','.join(header)[:100]!r}")
            for line in lines:
                if line:
                    rows.append(_row(f"{path}, line {lines.line_num}", line, rows[-1][0] if rows else -math.inf))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingError(f"{path}: expected a CSV file in UTF-8: {error}") from None
    if len(rows) < 2:
        raise SettingError(f"{path}: expected two lines of samples or more below the header, got {len(rows)}")
    if rows[-1][0] - rows[0][0] > LONGEST_S:
        raise SettingError(
            f"{path}: expected no more than {LONGEST_S / 86400:.0f} days from the first line to the last, in seconds"
        )
    t_s, events, queued = np.asarray(rows, np.float64).T
    return make_curve(t_s, events, queued)


def _row(where: str, line: list[str], before: float) -> tuple[float, float, float]:
    try:
        t_s, events, queued = (float(cell) for cell in line)
    except ValueError:
        raise SettingError(f"{where}: expected three numbers, got {','.join(line)[:100]!r}") from None
    if not math.isfinite(t_s):
        raise SettingError(f"{where}: expected a time in seconds, got {t_s}")
    if t_s <= before:
        raise SettingError(f"{where}: time goes from {before} to {t_s}; sort the file by t_s")
    for name, count in (("input", events), ("queued", queued)):
        if not 0 <= count < math.inf:
            raise SettingError(f"{where}: expected 0 or more in {name}, got {count}")
    return t_s, events, queued
