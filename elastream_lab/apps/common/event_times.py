"""Times of a workload's events by their numbers, the same whenever a run begins."""

from datetime import UTC, datetime

import numpy as np

from elastream.workload import Arrivals
from elastream_lab.apps.common.scatter import Numbers

BEGAN = datetime(2015, 7, 15, tzinfo=UTC)
"""The beginning of the workload."""


def happened_us(arrivals: Arrivals, numbers: Numbers) -> Numbers:
    """In microseconds since 1970: so long after the beginning as events are due."""
    if not len(numbers):
        return numbers
    first = int(numbers.min())
    due_s = arrivals.due_times(first, int(numbers.max()) + 1)[numbers - first]
    return int(BEGAN.timestamp()) * 1_000_000 + np.rint(due_s * 1e6).astype(np.int64)
