"""Pearson's and Spearman's coefficients: do queues and latency go together, do throughput and queues? (AI-SPS, tables 1 and 2)"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pearson(a: Floats, b: Floats) -> float | None:
    """Whether they go together in a line. None where one of them never changes: there is nothing to go together with."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def spearman(a: Floats, b: Floats) -> float | None:
    """Whether one grows when the other does, in a line or not."""
    return pearson(_ranks(a), _ranks(b))


def both(a: Floats, b: Floats) -> dict[str, float | None]:
    return {"pearson": pearson(a, b), "spearman": spearman(a, b)}


def _ranks(values: Floats) -> Floats:
    """Equal values share the mean of their places."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts - 1) / 2)[place]
    return ranks
