"""Lines of flow records: a tuple's number enters, a line leaves, the same one each time.

They are generated, or come from a CSV file in the order of their time, and again when the file has ended, that much later.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.errors import SettingError
from elastream_lab.apps.common.payload_files import read_csv
from elastream_lab.apps.common.scatter import Numbers
from elastream_lab.apps.ddos.clock import FLOWS_PER_S
from elastream_lab.apps.ddos.files import DEFAULTS, find_columns
from elastream_lab.apps.ddos.parsing import lines_of
from elastream_lab.apps.ddos.traffic import RECORD, Traffic


@dataclass(frozen=True)
class GeneratedFlows:
    """Called with numbers, makes the source's columns."""

    traffic: Traffic

    @property
    def per_s(self) -> float:
        """Flows per second of the log's own time."""
        return FLOWS_PER_S

    def __call__(self, numbers: Numbers) -> dict[str, Any]:
        return {"id": numbers, "raw": lines_of(self.traffic(numbers))}


@dataclass(frozen=True, eq=False)
class RecordedFlows:
    """The same from records that are sorted by time."""

    records: pa.RecordBatch

    @property
    def span_us(self) -> int:
        """From the first flow of a file to the first when it comes again."""
        first, last = (self.records.column("time")[place].value for place in (0, -1))
        gap_us = (last - first) // max(1, self.records.num_rows - 1)
        return int(last - first + max(1_000_000, gap_us))

    @property
    def per_s(self) -> float:
        return float(self.records.num_rows / (self.span_us / 1e6))

    def __call__(self, numbers: Numbers) -> dict[str, Any]:
        times, places = np.divmod(numbers, self.records.num_rows)
        records = self.records.take(pa.array(places))
        later = pa.array(np.asarray(records.column("time").cast(pa.int64())) + times * self.span_us)
        moved = records.set_column(0, RECORD.field("time"), later.cast(RECORD.field("time").type))
        return {"id": numbers, "raw": lines_of(moved)}


def flow_payload(file: str | None = None) -> GeneratedFlows | RecordedFlows:
    """Of the file, else generated."""
    return RecordedFlows(read_records(file)) if file else GeneratedFlows(Traffic())


def read_records(path: str) -> pa.RecordBatch:
    """Records of a CSV file, or as many of them as may travel; `flow_files` says which columns it must have."""
    header, rows = read_csv(path)
    named = find_columns(path, header)
    places = {name: header.index(column) for name, column in named.items()}
    cells: dict[str, list[str]] = {name: [] for name in RECORD.names}
    for number, row in rows:
        for name in RECORD.names:
            cell = row[places[name]].strip() if name in places else ""
            if "," in cell:
                raise SettingError(f"payload {path}, line {number}: expected no comma within {name}, got {cell!r:.60}")
            cells[name].append(cell or DEFAULTS.get(name, "" if name != "port" else "0"))
    columns = [_typed(path, name, cells[name], [number for number, _ in rows]) for name in RECORD.names]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD).sort_by("time")


def _typed(path: str, name: str, cells: list[str], lines: list[int]) -> pa.Array:
    kind = RECORD.field(name).type
    try:
        if pa.types.is_timestamp(kind):
            return pa.array(cells).cast(pa.timestamp("us")).cast(kind)
        return pa.array(cells).cast(kind)
    except pa.ArrowInvalid:
        for number, cell in zip(lines, cells, strict=True):
            try:
                pa.array([cell]).cast(pa.timestamp("us") if pa.types.is_timestamp(kind) else kind)
            except pa.ArrowInvalid:
                what = "a time such as 2026-03-02 08:00:00" if name == "time" else "a number"
                raise SettingError(
                    f"payload {path}, line {number}: expected {what} as {name}, got {cell!r:.60}"
                ) from None
        raise
