"""Any system's curve from a plain CSV file with the columns t_s, input, queued and perhaps waiting."""

import csv
import math
from pathlib import Path

import numpy as np

from elastream.errors import SettingError
from elastream.report.scores.adaptability import Curve, make_curve

LONGEST_S = 100 * 86400.0

HEADER = ["t_s", "input", "queued"]
WAITING = "waiting"
"""A fourth column, which may be left out."""


def read_curves(path: Path) -> tuple[Curve, Curve | None]:
    """Of what is queued, and of what of it waits for a busy replica where the file says so.

    `input` are the events that came in since the line before; times need not be even.
    """
    rows: list[list[float]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            header = [cell.strip() for cell in next(lines, [])]
            if header not in (HEADER, [*HEADER, WAITING]):
                raise SettingError(f"{path}, line 1: expected {','.join(HEADER)}, got {','.join(header)[:100]!r}")
            for line in lines:
                if line:
                    where = f"{path}, line {lines.line_num}"
                    rows.append(_row(where, line, header, rows[-1][0] if rows else -math.inf))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingError(f"{path}: expected a CSV file in UTF-8: {error}") from None
    if len(rows) < 2:
        raise SettingError(f"{path}: expected two lines of samples or more below the header, got {len(rows)}")
    if rows[-1][0] - rows[0][0] > LONGEST_S:
        raise SettingError(
            f"{path}: expected no more than {LONGEST_S / 86400:.0f} days from the first line to the last, in seconds"
        )
    t_s, events, queued, *waiting = np.asarray(rows, np.float64).T
    return make_curve(t_s, events, queued), make_curve(t_s, events, waiting[0]) if waiting else None


def _row(where: str, line: list[str], header: list[str], before: float) -> list[float]:
    try:
        values = [float(cell) for cell in line]
    except ValueError:
        values = []
    if len(values) != len(header):
        number = "three" if len(header) == len(HEADER) else "four"
        raise SettingError(f"{where}: expected {number} numbers, got {','.join(line)[:100]!r}")
    t_s = values[0]
    if not math.isfinite(t_s):
        raise SettingError(f"{where}: expected a time in seconds, got {t_s}")
    if t_s <= before:
        raise SettingError(f"{where}: time goes from {before} to {t_s}; sort the file by t_s")
    for name, count in zip(header[1:], values[1:], strict=True):
        if not 0 <= count < math.inf:
            raise SettingError(f"{where}: expected 0 or more in {name}, got {count}")
    return values
