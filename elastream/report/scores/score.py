"""The score of a run: every number that its samples give."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from elastream.report.latency import LatencyPoint
from elastream.report.record import Record
from elastream.report.scores.adaptability import Adaptability, Curve, adaptability, make_curve
from elastream.report.scores.correlation import both
from elastream.report.scores.metrics import (
    Floats,
    healthy_until,
    lowest_health,
    replicas_for_peak,
    saved_resources,
    throughput_degradation,
)
from elastream.report.series import Sample

Span = tuple[float, float]
"""From one second to another."""


def score(record: Record, latencies: Sequence[LatencyPoint], r_over: int | None = None) -> dict[str, Any]:
    """`r_over` replicas are what a run sized for the peak needs; without it they are reckoned from the run's own peak."""
    if r_over is None:
        r_over = replicas_for_peak(record.series, record.sources, record.pools, record.interval_s)
    served = {name: its for name, its in record.series.operators.items() if name not in record.sources}
    found = {
        "r_over": r_over,
        "saved_resources": saved_resources(record.series, record.pools, r_over),
        "throughput_degradation": throughput_degradation(
            record.series, record.sources, record.window_s or record.interval_s
        ),
        "replica_seconds": sum(s.replicas * s.seconds for its in served.values() for s in its),
        "health": {name: lowest_health(its, record.interval_s) for name, its in served.items() if name in record.pools},
        "congested": _first_congested([its for name, its in served.items() if name in record.pools], record.interval_s),
        **both_indices(run_curve(record), busy_curve(record), record.spikes),
        "correlations": _correlations(record, latencies),
    }
    document: dict[str, Any] = rounded(found)
    return document


def _first_congested(operators: Sequence[Sequence[Sample]], interval_s: float) -> dict[str, float] | None:
    """When the first operator was congested, and what it received per second then; None when none ever was."""
    found = [its for samples in operators if (its := healthy_until(samples, interval_s)) is not None]
    return dict(zip(("t_s", "input_per_s"), min(found), strict=True)) if found else None


def run_curve(record: Record) -> Curve | None:
    """All that entered and all that was queued, tick by tick. None if there was no tick."""
    times, entered, queued, _ = _totals(record)
    return make_curve(times, entered, queued) if len(times) else None


def busy_curve(record: Record) -> Curve | None:
    """The same with only those queued that wait for a busy replica. None if nobody knows which do."""
    known = all(sample.waiting is not None for its in record.series.operators.values() for sample in its)
    times, entered, waiting, _ = _totals(record, "waiting") if known else (np.zeros(0),) * 4
    return make_curve(times, entered, waiting) if len(times) else None


def both_indices(queued: Curve | None, waiting: Curve | None, injected: Sequence[Span] = ()) -> dict[str, Any]:
    """The index as the paper has it, of all that is queued, and of what waits for a busy replica."""
    found = adaptability(queued, injected) if queued else Adaptability(None, None, None, (), "the run has no samples")
    unknown = Adaptability(None, None, None, (), "nobody knows which tuples wait for a busy replica")
    busy = adaptability(waiting, injected) if waiting else unknown
    return {"ai_sps": _adaptability_json(found), "ai_sps_busy": _adaptability_json(busy)}


def _adaptability_json(found: Adaptability) -> dict[str, Any]:
    document = asdict(found)
    document["spikes"] = document.pop("recoveries")
    return document


def rounded(value: Any) -> Any:
    """Every float in a document, however deep, to seven digits that count."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, Mapping):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value


def _totals(record: Record, waits: str = "queued") -> tuple[Floats, Floats, Floats, Floats]:
    """The ends of the ticks; what came from outside, waited and finished in each.

    What came is what was due, read or not: a source that was held up reads more afterwards, which is no spike.
    """
    operators = record.series.operators
    ticks = min((len(its) for its in operators.values()), default=0)

    def total(names: Sequence[str], what: str) -> Floats:
        columns = [[getattr(sample, what) for sample in operators[name][:ticks]] for name in names if name in operators]
        return np.sum(np.asarray(columns, np.float64), axis=0) if columns else np.zeros(ticks)

    times = np.asarray([sample.t_s for sample in next(iter(operators.values()), [])[:ticks]], np.float64)
    waiting = tuple(name for name in operators if name in record.pools or name in record.sources)
    came = total(record.sources, "entered") + np.diff(total(record.sources, "queued"), prepend=0.0)
    return times, np.maximum(came, 0.0), total(waiting, waits), total(tuple(operators), "finished")


def _correlations(record: Record, latencies: Sequence[LatencyPoint]) -> dict[str, Any] | None:
    """Over stretches of a second, in which something finished."""
    times, _, queued, finished = _totals(record)
    if len(times) < 2 or times[-1] < 2.0:
        return None
    edges = np.arange(int(times[-1]) + 1, dtype=np.float64)
    waited = np.interp((edges[:-1] + edges[1:]) / 2, times, queued)
    out = np.diff(np.interp(edges, np.append(0.0, times), np.append(0.0, np.cumsum(finished))))
    found = {"throughput_queue": both(out, waited)}
    if latencies:
        # A tuple that finishes in a stretch is weighed with the others of it.
        place = np.clip(np.searchsorted(edges, [point.t_s for point in latencies], side="left") - 1, 0, len(out) - 1)
        counts = np.bincount(place, [point.count for point in latencies], len(out))
        sums = np.bincount(place, [point.count * point.mean_s for point in latencies], len(out))
        some = counts > 0
        found["queue_latency"] = both(waited[some], sums[some] / counts[some])
    return found
