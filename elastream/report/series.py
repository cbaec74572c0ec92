"""The story of a run in samples: one row per operator and tick, thinned out evenly when it gets long."""

from dataclasses import dataclass

import pyarrow as pa

MOST_SAMPLES = 20_000
"""Per operator. A longer run has its neighbours merged, two into one, so memory stays bounded."""


@dataclass(frozen=True)
class Sample:
    """What one operator did in one step of time."""

    t_s: float
    """End of the step, in seconds since the run began."""
    seconds: float
    input: int
    """Tuples received; for a source, tuples it brought in."""
    processed: int
    dropped: int
    """Without dead letters."""
    queued: int
    replicas: int
    busy_s: float
    entered: int = 0
    """Tuples that entered the topology here."""
    finished: int = 0
    """Tuples that left it here."""
    waiting: int | None = None
    """Of those queued, the tuples that wait for a busy replica: not those in service, nor those whose replica is about to
    take them. None where nobody knows."""
    late: int = 0
    """Of those dropped, older than `t_out_s` or than the watermark."""

    def merged(self, later: "Sample") -> "Sample":
        return Sample(
            later.t_s,
            self.seconds + later.seconds,
            self.input + later.input,
            self.processed + later.processed,
            self.dropped + later.dropped,
            later.queued,
            later.replicas,
            self.busy_s + later.busy_s,
            self.entered + later.entered,
            self.finished + later.finished,
            later.waiting,
            self.late + later.late,
        )


class Series:
    """Samples by operator, in the order in which they were added."""

    def __init__(self) -> None:
        self.operators: dict[str, list[Sample]] = {}

    def add(self, operator: str, sample: Sample) -> None:
        samples = self.operators.setdefault(operator, [])
        samples.append(sample)
        if len(samples) > MOST_SAMPLES:
            pairs = zip(samples[::2], samples[1::2], strict=False)
            self.operators[operator] = [a.merged(b) for a, b in pairs] + samples[len(samples) // 2 * 2 :]

    def to_table(self) -> pa.Table:
        rows = [{"operator": name, **vars(sample)} for name, samples in self.operators.items() for sample in samples]
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> "Series":
        series = cls()
        names = table["operator"].to_pylist()
        if "waiting" not in table.column_names:
            # Of an older run.
            table = table.append_column("waiting", pa.nulls(len(table), pa.int64()))
        if "late" not in table.column_names:
            table = table.append_column("late", pa.array([0] * len(table), pa.int64()))
        columns = [table[field.name].to_pylist() for field in _SCHEMA if field.name != "operator"]
        for name, *values in zip(names, *columns, strict=True):
            series.operators.setdefault(name, []).append(Sample(*values))
        return series


_SCHEMA = pa.schema(
    [
        ("operator", pa.string()),
        ("t_s", pa.float64()),
        ("seconds", pa.float64()),
        ("input", pa.int64()),
        ("processed", pa.int64()),
        ("dropped", pa.int64()),
        ("queued", pa.int64()),
        ("replicas", pa.int64()),
        ("busy_s", pa.float64()),
        ("entered", pa.int64()),
        ("finished", pa.int64()),
        ("waiting", pa.int64()),
        ("late", pa.int64()),
    ]
)
