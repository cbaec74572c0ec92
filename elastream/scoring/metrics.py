"""The numbers of the PSPS paper, from the samples of a run."""

import numpy as np

from elastream.scoring.series import Sample, Series


def mean_replicas(samples: list[Sample]) -> float:
    """Over time, not over samples: a long tick counts for long."""
    seconds = sum(sample.seconds for sample in samples)
    return sum(sample.replicas * sample.seconds for sample in samples) / seconds if seconds else 0.0


def saved_resources(series: Series, pools: dict[str, int], r_over: int | None = None) -> float:
    """1 - r / r_over: the share of the replicas of a run sized for its peak that were not used.

    `pools` are the operators whose replicas count and the most each may have; without `r_over`, what a run sized for the
    peak needs is taken to be all of these.
    """
    over = r_over if r_over is not None else sum(pools.values())
    used = sum(mean_replicas(series.operators.get(name, [])) for name in pools)
    return 1 - used / over if over else 0.0


def throughput_degradation(series: Series, interval_s: float) -> float:
    """The mean over intervals of |in - out| / in.

    `in` and `out` are the tuples that entered and finished. Only whole intervals until the input ended count, and of these
    only those in which something entered: a pipeline that works off its backlog when nothing comes any more has no input
    to be measured against.
    """
    samples = [sample for its in series.operators.values() for sample in its]
    intervals = int(max((sample.t_s for sample in samples if sample.entered), default=0.0) / interval_s + 1e-9)
    if not intervals:
        return 0.0
    edges = np.arange(intervals + 1) * interval_s
    entered, finished = np.zeros(intervals), np.zeros(intervals)
    for its in series.operators.values():
        ends = np.array([0.0, *(sample.t_s for sample in its)])
        for counts, values in (
            (entered, [sample.entered for sample in its]),
            (finished, [sample.finished for sample in its]),
        ):
            # A tick's tuples are spread evenly over the tick, so that ticks and intervals need not agree.
            counts += np.diff(np.interp(edges, ends, np.cumsum([0.0, *values])))
    busy = entered > 0.5
    return float(np.mean(np.abs(entered - finished)[busy] / entered[busy])) if busy.any() else 0.0
