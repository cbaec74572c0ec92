"""Latencies in buckets: small to send, and still near the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.codec import decode, encode, to_plain
from elastream.report.latency import Latencies

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=60)

SECONDS = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=200)


def _of(*parts: "list[float] | np.ndarray") -> Latencies:
    made = Latencies()
    for part in parts:
        made.add(np.asarray(part, np.float64))
    return made


@PATIENT
@given(seconds=SECONDS, share=st.sampled_from([0.5, 0.75, 0.95, 0.99, 1.0]))
def test_percentiles_are_within_six_percent_of_the_exact_ones(seconds: list[float], share: float) -> None:
    exact = np.percentile(seconds, 100 * share, method="inverted_cdf")
    assert _of(seconds).percentile_s(share) == pytest.approx(exact, rel=0.06)


@PATIENT
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.1, 2.0), middle_s=st.floats(0.01, 10))
def test_percentiles_of_many_are_within_six_percent_of_numpys(seed: int, spread: float, middle_s: float) -> None:
    seconds = middle_s * np.random.default_rng(seed).lognormal(0, spread, 5_000)
    seconds = np.maximum(seconds, 2e-4)
    found = _of(seconds)
    for share in (0.5, 0.9, 0.95, 0.99):
        assert found.percentile_s(share) == pytest.approx(np.percentile(seconds, 100 * share), rel=0.06)


@PATIENT
@given(seconds=SECONDS)
def test_count_mean_and_largest_stay_exact(seconds: list[float]) -> None:
    found = _of(seconds)
    assert found.count == len(seconds)
    assert found.mean_s == pytest.approx(np.mean(seconds))
    assert found.max_s == max(seconds)
    assert found.percentile_s(1.0) <= found.max_s


@PATIENT
@given(seconds=SECONDS, shares=st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_a_higher_share_never_has_a_lower_latency(seconds: list[float], shares: list[float]) -> None:
    found = _of(seconds)
    latencies = [found.percentile_s(share) for share in sorted(shares)]
    assert latencies == sorted(latencies)


@PATIENT
@given(parts=st.lists(SECONDS | st.just([]), max_size=5))
def test_merged_parts_are_all_of_them_together(parts: list[list[float]]) -> None:
    merged = Latencies()
    for part in parts:
        merged.merge(_of(part))
    together = _of(*parts)
    assert merged.buckets == together.buckets == _of([second for part in parts for second in part]).buckets
    assert merged.max_s == together.max_s
    assert merged.sum_s == pytest.approx(together.sum_s)
    for share in (0.5, 0.95, 0.99):
        assert merged.percentile_s(share) == together.percentile_s(share)


def test_merging_leaves_the_other_as_it_was() -> None:
    one, other = _of([0.1, 0.2]), _of([0.1, 5.0])
    before = to_plain(other)
    one.merge(other)
    assert one.count == 4
    assert to_plain(other) == before


@PATIENT
@given(seconds=SECONDS | st.just([]))
def test_latencies_survive_the_way_through_json(seconds: list[float]) -> None:
    sent = _of(seconds)
    arrived = decode(encode(sent), Latencies, "here")
    assert arrived == sent
    assert arrived.summary_ms() == sent.summary_ms()
    arrived.merge(sent)
    assert arrived.count == 2 * sent.count


def test_a_summary_is_in_milliseconds() -> None:
    summary = _of(np.full(100, 0.25)).summary_ms()
    assert list(summary) == ["mean", "p50", "p95", "p99", "max"]
    assert summary["mean"] == pytest.approx(250)
    assert summary["max"] == 250
    assert all(summary[name] == pytest.approx(250, rel=0.06) for name in ("p50", "p95", "p99"))


def test_without_latencies_everything_is_nothing() -> None:
    assert _of([]).summary_ms() == {"mean": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}
    assert _of([]).count == 0


def test_times_too_short_to_tell_count_as_the_shortest() -> None:
    # Clocks of two machines differ a little, so that a tuple may seem to arrive before it was due.
    found = _of([-0.001, 0.0, 1e-9, 5e-5])
    assert found.count == 4
    assert 0 <= found.percentile_s(0.99) <= 1e-4


def test_a_million_latencies_stay_small() -> None:
    found = _of(np.random.default_rng(1).lognormal(0, 2, 1_000_000))
    assert found.count == 1_000_000
    assert len(encode(found)) < 5_000


def test_the_simulator_counts_a_latency_in_the_bucket_of_the_report() -> None:
    from elastream.simulator.kernel import note_wait
    from elastream.simulator.plant import latencies_of
    from elastream.simulator.state import BUCKETS

    seconds = [0.0, 1e-5, 1e-4, *(1e-4 * 1.1**n for n in range(-3, 200, 7)), 0.25, 3.0, 86_000.0]
    waits, clock = np.zeros(BUCKETS), np.zeros(16)
    for one in seconds:
        note_wait(waits, clock, one, 1.0)
    assert latencies_of(waits, clock, max(seconds)).buckets == _of(seconds).buckets
