"""How a run was in the end, when a policy has found its sizes: the last tenth of it."""

from typing import Any

from elastream.report.record import Record

LAST = 0.1


def end_of_run(record: Record) -> dict[str, Any] | None:
    """Latency, replicas and output per second; None of a run without a tuple."""
    ends = [samples[-1].t_s for samples in record.series.operators.values() if samples]
    if not ends:
        return None
    from_s = (1 - LAST) * max(ends)
    points = [point for point in record.latency_line.points() if point.t_s > from_s]
    served = {name: its for name, its in record.series.operators.items() if name not in record.sources and its}
    late = {name: [s for s in its if s.t_s > from_s] for name, its in record.series.operators.items()}
    # The first of them began before the last tenth did.
    seconds = max(sum(sample.seconds for sample in its) for its in late.values())
    finished = sum(sample.finished for its in late.values() for sample in its)
    count = sum(point.count for point in points)
    return {
        "latency_ms": round(sum(p.mean_s * p.count for p in points) / count * 1e3, 3) if count else None,
        "replicas": {name: its[-1].replicas for name, its in served.items() if name in record.pools},
        "finished_per_s": round(finished / seconds, 3) if seconds else None,
    }
