"""The numbers of the PSPS paper, and the health of the multi-level paper, from the samples of a run."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from elastream.report.series import Sample, Series

Floats = npt.NDArray[np.float64]


def mean_replicas(samples: list[Sample]) -> float:
    """Over time, not over samples: a long tick counts for long."""
    seconds = sum(sample.seconds for sample in samples)
    return sum(sample.replicas * sample.seconds for sample in samples) / seconds if seconds else 0.0


def saved_resources(series: Series, pools: Mapping[str, int], r_over: int) -> float:
    """1 - r / r_over: the share of the replicas of a run sized for its peak that were not used.

    `pools` are the operators whose replicas count.
    """
    used = sum(mean_replicas(series.operators.get(name, [])) for name in pools)
    return 1 - used / r_over if r_over else 0.0


def replicas_for_peak(series: Series, sources: Sequence[str], pools: Mapping[str, int], interval_s: float) -> int:
    """r_over: the replicas that serve the interval with the highest input without a queue, by equation 1 of the PSPS paper.

    Of an operator that served nothing the whole pool counts.
    """
    entered = per_interval(series, sources, "entered", interval_s)
    if not len(entered) or not entered.any():
        return sum(pools.values())
    needed = 0
    for name, most in pools.items():
        samples = series.operators.get(name, [])
        processed, busy_s = sum(s.processed for s in samples), sum(s.busy_s for s in samples)
        if not processed:
            needed += most
            continue
        peak = entered.max() * sum(s.input for s in samples) / entered.sum()
        needed += min(most, max(1, math.ceil(peak * busy_s / processed / interval_s - 1e-9)))
    return needed


def throughput_degradation(series: Series, sources: Sequence[str], interval_s: float) -> float:
    """The mean over intervals of |in - out| / in.

    `in` and `out` are the tuples that entered and finished; where a flow splits, a tuple from a source counts as often as
    tuples become of it on the average of the run. Only whole intervals until the input ended count, and of these only
    those in which something entered: a pipeline that works off its backlog when nothing comes any more has no input to
    be measured against.
    """
    from_sources = per_interval(series, sources, "entered", interval_s)
    if not from_sources.any():
        return 0.0
    everywhere = tuple(series.operators)
    made = sum(s.entered for name in everywhere for s in series.operators[name])
    came = sum(s.entered for name in sources for s in series.operators.get(name, []))
    entered = from_sources * (made / came)
    finished = per_interval(series, everywhere, "finished", interval_s)[: len(entered)]
    finished = np.pad(finished, (0, len(entered) - len(finished)))
    busy = entered > 0.5
    return float(np.mean(np.abs(entered - finished)[busy] / entered[busy])) if busy.any() else 0.0


def per_interval(series: Series, operators: Sequence[str], what: str, interval_s: float) -> Floats:
    """A count of these operators in each whole interval up to the last in which there is any.

    A tick's tuples are spread evenly over the tick, so that ticks and intervals need not agree.
    """
    chosen = [series.operators[name] for name in operators if series.operators.get(name)]
    last_s = max((s.t_s for its in chosen for s in its if getattr(s, what)), default=0.0)
    edges = np.arange(int(last_s / interval_s + 1e-9) + 1) * interval_s
    counts = np.zeros(len(edges) - 1)
    for its in chosen:
        ends = np.array([0.0, *(sample.t_s for sample in its)])
        counts += np.diff(np.interp(edges, ends, np.cumsum([0.0, *(getattr(sample, what) for sample in its)])))
    return counts


def health(samples: Sequence[Sample]) -> float:
    """Processed per received (multi-level elasticity): below 0.9 an operator is congested. Nothing received is healthy."""
    received = sum(sample.input for sample in samples)
    return sum(sample.processed for sample in samples) / received if received else 1.0


def healthy_until(samples: Sequence[Sample], interval_s: float, least: float = 0.9) -> tuple[float, float] | None:
    """The second from which an operator is congested, and the tuples per second it receives then; None while it never is.

    That is the first interval in which it processes less than this share of what it receives.
    """
    received, processed = _both_counts(samples, interval_s)
    ill = np.flatnonzero((received > 0.5) & (processed < least * received))
    return (float(ill[0] * interval_s), float(received[ill[0]] / interval_s)) if len(ill) else None


def lowest_health(samples: Sequence[Sample], interval_s: float) -> float:
    """Of the intervals of a run in which something was received."""
    received, processed = _both_counts(samples, interval_s)
    some = received > 0.5
    return float(np.min(processed[some] / received[some])) if some.any() else 1.0


def _both_counts(samples: Sequence[Sample], interval_s: float) -> tuple[Floats, Floats]:
    """Tuples received and processed in each interval in which some were received, and those before."""
    series = Series()
    series.operators["it"] = list(samples)
    received = per_interval(series, ("it",), "input", interval_s)
    processed = per_interval(series, ("it",), "processed", interval_s)[: len(received)]
    return received, np.pad(processed, (0, len(received) - len(processed)))
