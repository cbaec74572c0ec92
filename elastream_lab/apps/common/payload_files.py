"""Files of real payloads: a path enters, as many of its entries leave as may travel to every worker.

Every error names the file and the line.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from elastream.errors import SettingError

Entry = TypeVar("Entry")

MOST_ENTRIES = 4000
MOST_BYTES = 1_000_000
"""What one pool may weigh: it is shipped whole to every worker."""


def read_tsv(path: str, header: tuple[str, ...]) -> list[tuple[int, list[str]]]:
    """A sample of the rows, each with its line number."""
    lines = _lines(path)
    found = next(lines, (1, ""))[1].split("\t")
    if found != list(header):
        raise SettingError(f"payload {path}, line 1: expected the header {header}, got {tuple(found)!r:.100}")
    rows = []
    for number, line in lines:
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != len(header):
            raise SettingError(
                f"payload {path}, line {number}: expected {len(header)} cells with a tab between, got {len(cells)}"
            )
        rows.append((number, cells))
    return _sample(path, rows, [len(cells[-1]) for _, cells in rows])


def read_names(path: str) -> list[str]:
    """A sample of the names: one a line, or the column `host` of a .csv file."""
    found = _csv_column(path, "host") if path.endswith(".csv") else (line for _, line in _lines(path))
    names = [name.strip() for name in found if name.strip()]
    return _sample(path, names, [len(name) for name in names])


def read_text(path: str) -> list[str]:
    """A sample of the lines that are not empty, of any number: only their size is bounded."""
    lines = [line.strip() for _, line in _lines(path) if line.strip()]
    return _sample(path, lines, [len(line) for line in lines], most=len(lines))


def read_csv(path: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and a sample of the rows, each with its line number."""
    rows = _csv_rows(path)
    _, header = next(rows, (1, []))
    kept = list(rows)
    return header, _sample(path, kept, [sum(map(len, cells)) for _, cells in kept], most=len(kept))


def _csv_column(path: str, column: str) -> Iterator[str]:
    rows = _csv_rows(path)
    _, header = next(rows, (1, []))
    if column not in header:
        raise SettingError(f"payload {path}, line 1: expected a column {column}, got {', '.join(header)[:100]!r}")
    place = header.index(column)
    for _, row in rows:
        yield row[place]


def _csv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """The header and the rows that are not empty, with their line numbers; all of them have as many cells."""
    reader = csv.reader(line for _, line in _lines(path))
    width = None
    try:
        for row in reader:
            width = len(row) if width is None else width
            if row and len(row) != width:
                raise SettingError(f"payload {path}, line {reader.line_num}: expected {width} cells, got {len(row)}")
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise SettingError(f"payload {path}, line {reader.line_num}: expected CSV: {error}") from None


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Numbered lines. Only a line feed ends one: a tweet may hold other kinds of line ends."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"payload {path}: cannot be read: {error.strerror}; name a file that can") from None
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\r")
        except UnicodeDecodeError:
            raise SettingError(f"payload {path}, line {number}: expected UTF-8; convert the file") from None
        yield number, text


def _sample(path: str, entries: list[Entry], sizes: list[int], most: int = MOST_ENTRIES) -> list[Entry]:
    """Every n-th entry, so that all parts of the file are there; the same ones each time."""
    if not entries:
        raise SettingError(f"payload {path}, line 1: expected at least one entry, got none; name a file that has some")
    by_count = -(-len(entries) // most)
    by_bytes = -(-sum(sizes) // MOST_BYTES)
    return entries[:: max(by_count, by_bytes, 1)]
