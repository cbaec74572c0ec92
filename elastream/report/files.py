"""A run on disk: series.parquet, which says of itself what its numbers are of, and latency.parquet."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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


def write_record(record: Record, folder: Path) -> None:
    about = {
        "name": record.name,
        "policy": record.policy,
        "sources": list(record.sources),
        "pools": record.pools,
        "interval_s": record.interval_s,
        "window_s": record.window_s,
        "spikes": record.spikes,
    }
    table = record.series.to_table().replace_schema_metadata({_ABOUT: json.dumps(about)})
    pq.write_table(table, folder / SERIES)
    rows = [vars(point) for point in record.latency_line.points()]
    pq.write_table(pa.Table.from_pylist(rows, schema=_LATENCY), folder / LATENCY)


def read_record(path: Path) -> tuple[Record, list[LatencyPoint]]:
    """From series.parquet, and the latency.parquet beside it if there is one."""
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[_ABOUT])
        record = Record(
            about["name"],
            tuple(about["sources"]),
            Series.from_table(table),
            pools=about["pools"],
            interval_s=about["interval_s"],
            policy=about["policy"],
            window_s=about.get("window_s"),
            spikes=tuple((from_s, to_s) for from_s, to_s in about.get("spikes", ())),
        )
        beside = path.parent / LATENCY
        points = [LatencyPoint(**row) for row in pq.read_table(beside).to_pylist()] if beside.is_file() else []
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())[:150]
        raise SettingError(f"{path}: expected the series.parquet of a run of Elastream: {said}") from None
    return record, points
