"""The lower bound on replica seconds with few rescales: known cases."""

import numpy as np
import pytest

from elastream_lab.bench.tournament.rescale_bound import STEP_S, Floats, cheapest


def work_of(*replicas: float, seconds: float) -> Floats:
    """So many replicas' work per second, each for so long."""
    steps = round(seconds / STEP_S)
    return np.append(0.0, np.cumsum(np.repeat(replicas, steps) * STEP_S))


def test_a_constant_rate_is_served_by_one_size_and_never_rescaled() -> None:
    found = cheapest(work_of(3.0, seconds=20.0), 5.0, most=8)
    assert found.rescales == 0
    assert found.replica_seconds == pytest.approx(60.0)


def test_a_price_makes_rescales_fewer_and_replica_seconds_more() -> None:
    work = work_of(2.0, 6.0, 2.0, 6.0, 2.0, seconds=6.0)
    free, cheap, dear = (cheapest(work, price, most=8) for price in (0.0, 2.0, 1000.0))
    assert free.replica_seconds == pytest.approx(108.0, rel=0.03)
    assert free.rescales > cheap.rescales == 4
    assert free.replica_seconds <= cheap.replica_seconds < dear.replica_seconds
    # One size: with a second of waiting, 36 replica seconds of work may take seven.
    assert dear.rescales == 0 and dear.replica_seconds == pytest.approx(30 * 6.0)
