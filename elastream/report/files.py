"""A run on disk: series.parquet, which says of itself what its numbers are of, and latency.parquet."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from elastream.codec import convert, decode, encode, to_plain
from elastream.errors import SettingError
from elastream.report.latency import LatencyPoint
from elastream.report.record import Record
from elastream.report.series import Series

SERIES, LATENCY = "series.parquet", "latency.parquet"

_ABOUT = b"elastream"
_LATENCY = pa.schema(
    [
        (name, pa.int64() if name == "count" else pa.float64())
        for name in ("t_s", "count", "mean_s", "p50_s", "p95_s", "p99_s")
    ]
)


@dataclass(frozen=True)
class About:
    """The part of a record that is no column: it is written into the metadata of series.parquet."""

    name: str
    policy: str
    sources: tuple[str, ...]
    pools: dict[str, int]
    interval_s: float
    window_s: float | None = None
    spikes: tuple[tuple[float, float], ...] = ()


def write_record(record: Record, folder: Path) -> None:
    about = About(**{field.name: getattr(record, field.name) for field in fields(About)})
    table = record.series.to_table().replace_schema_metadata({_ABOUT: encode(about)})
    pq.write_table(table, folder / SERIES)
    rows = to_plain(record.latency_line.points())
    pq.write_table(pa.Table.from_pylist(rows, schema=_LATENCY), folder / LATENCY)


def read_record(path: Path) -> tuple[Record, list[LatencyPoint]]:
    """From series.parquet, and the latency.parquet beside it if there is one."""
    where = f"{path}: expected the series.parquet of a run of Elastream"
    try:
        table = pq.read_table(path)
        about = decode((table.schema.metadata or {})[_ABOUT], About, where, error=SettingError)
        series = Series.from_table(table)
        beside = path.parent / LATENCY
        rows = pq.read_table(beside).to_pylist() if beside.is_file() else []
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())[:150]
        raise SettingError(f"{where}: {said}") from None
    points = convert(rows, list[LatencyPoint], f"{beside}: expected latencies of a run", error=SettingError)
    return Record(series=series, **asdict(about)), points


def read_report(path: Path) -> dict[str, Any]:
    """A report.json, as `write_report` wrote it; versions of Elastream differ in the figures that they have."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SettingError(f"{path}: cannot be read: {error.strerror}") from None
    return decode(text, dict[str, Any], str(path), error=SettingError, fix="; expected the report.json of a run")
