"""The adaptability index: the paper's tables, curves whose K_s and tau are known, and the cases at the edges."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.report.scores.adaptability import CEILING, Curve, adaptability, index_of, make_curve
from elastream.report.scores.spikes import Spike, find_spikes

Floats = npt.NDArray[np.float64]

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=60)

TABLES_5_AND_6 = [
    (0.9837, 2.40, 6.477),
    (0.6055, 1.80, 5.141),
    (0.8400, 4.9, 5.596),
    (0.5327, 12.80, 3.361),
    (0.77, 5.20, 5.292),
    (0.52, 2.80, 4.683),
    (0.99, 0.9, 6.706),
    (0.37, 23, 1.353),
]

TABLE_4 = {
    0: (4.992, 3.656, 4.111, 1.876),
    5: (5.487, 4.151, 4.606, 2.371),
    10: (5.982, 4.646, 5.101, 2.866),
    15: (6.477, 5.141, 5.596, 3.361),
    20: (6.972, 5.636, 6.091, 3.856),
}


@pytest.mark.parametrize(("k_s", "tau_s", "index"), TABLES_5_AND_6)
def test_the_index_is_that_of_the_papers_tables_5_and_6(k_s: float, tau_s: float, index: float) -> None:
    assert index_of(k_s, tau_s) == pytest.approx(index, abs=0.005)


@pytest.mark.parametrize("phi", TABLE_4)
def test_the_index_is_that_of_the_papers_table_4(phi: float) -> None:
    found = [index_of(k_s, tau_s, phi) for k_s, tau_s, _ in TABLES_5_AND_6[:4]]
    assert found == pytest.approx(TABLE_4[int(phi)], abs=0.005)


def test_the_index_stays_on_its_scale_and_says_its_ceiling() -> None:
    assert index_of(0.0, 1000.0) == 0.0
    assert index_of(1.0, 0.0, 90.0) == 9.0
    assert pytest.approx(3.751 + 0.099 * 15 + 1.631) == CEILING == 6.867
    assert max(index for _, _, index in TABLES_5_AND_6) < CEILING
    assert adaptability(steps((60, 1000, 50))).ceiling == CEILING


QUEUED = 200.0


def curve(
    k_s: float,
    tau_s: float,
    *,
    shape: str = "line",
    lowest: float = 0.05,
    fall_s: float = 3.0,
    spike_s: float = 5.0,
    before_s: float = 20.0,
    after_s: float = 60.0,
    step_s: float = 0.1,
) -> Curve:
    """Five times the input for a while; the inverse queue falls in a line, climbs for `tau_s`, and stays."""
    t = step_s * np.arange(1, round((before_s + fall_s + tau_s + after_s) / step_s) + 1).astype(np.float64)
    events = np.where((t > before_s + 1e-9) & (t <= before_s + spike_s + 1e-9), 5000.0, 1000.0) * step_s
    fallen_s = before_s + fall_s
    share = np.clip((t - fallen_s) / tau_s, 0, 1)
    climbed = lowest + (k_s - lowest) * share if shape == "line" else 1 / ((1 - share) / lowest + share / k_s)
    level = np.where(t <= fallen_s, 1 - (1 - lowest) * np.clip((t - before_s) / fall_s, 0, 1), climbed)
    return make_curve(t, events, QUEUED / level)


@PATIENT
@given(
    k_s=st.floats(0.3, 1.0),
    tau_s=st.integers(10, 300).map(lambda tenths: tenths / 10),
    shape=st.sampled_from(["line", "drain"]),
    lowest=st.floats(0.01, 0.1),
)
def test_known_k_s_and_tau_are_recovered_to_two_per_cent(k_s: float, tau_s: float, shape: str, lowest: float) -> None:
    found = adaptability(curve(k_s, tau_s, shape=shape, lowest=lowest))
    assert len(found.recoveries) == 1
    assert found.k_s == pytest.approx(k_s, rel=0.02)
    # One sample, a tenth of a second, is as near as it gets.
    assert found.tau_s == pytest.approx(tau_s, rel=0.02, abs=0.1001)
    assert found.index == pytest.approx(index_of(k_s, tau_s), abs=0.2)
    (recovery,) = found.recoveries
    assert recovery.settled
    assert recovery.onset_s == pytest.approx(20.1, abs=0.11)
    assert recovery.minimum_s == pytest.approx(23.0, abs=0.11)


def test_coarser_samples_are_interpolated() -> None:
    found = adaptability(curve(0.8, 10.0, step_s=0.5))
    assert found.k_s == pytest.approx(0.8, rel=0.02)
    assert found.tau_s == pytest.approx(10.0, rel=0.05)


def test_noise_of_a_tenth_moves_the_index_little() -> None:
    clean = curve(0.84, 4.9)
    random = np.random.default_rng(3)
    noisy = Curve(
        clean.t_s, clean.input_per_s, clean.inverse_queue * np.exp(0.1 * random.standard_normal(len(clean.t_s)))
    )
    found, exact = adaptability(noisy), adaptability(clean)
    assert found.index == pytest.approx(exact.index, abs=0.5)


def steps(*parts: tuple[float, float, float]) -> Curve:
    """Stretches of (seconds, input per second, queued)."""
    tenths = [(round(seconds * 10), rate, queued) for seconds, rate, queued in parts]
    rates = np.concatenate([np.full(n, rate) for n, rate, _ in tenths])
    queued = np.concatenate([np.full(n, queued) for n, _, queued in tenths])
    return make_curve(np.arange(1, len(rates) + 1) / 10, rates / 10, queued)


def test_without_a_spike_there_is_no_index_but_a_reason() -> None:
    found = adaptability(steps((60, 1000, 50)))
    assert (found.index, found.k_s, found.tau_s, found.recoveries) == (None, None, None, ())
    assert "no spike" in found.reason


@pytest.mark.parametrize("queued", [5, 200, 40_000])
def test_a_queue_that_a_spike_does_not_move_has_the_highest_index(queued: float) -> None:
    found = adaptability(steps((30, 1000, queued), (12, 4000, queued), (60, 1000, queued)))
    assert (found.k_s, found.tau_s) == (1.0, 0.0)
    assert found.index == pytest.approx(6.867)
    assert found.recoveries[0].settled


def test_a_queue_that_only_trembles_as_before_is_not_moved() -> None:
    random = np.random.default_rng(2)
    clean = steps((30, 1000, 5), (12, 4000, 5), (60, 1000, 5))
    trembling = Curve(clean.t_s, clean.input_per_s, 1 / random.integers(4, 7, len(clean.t_s)))
    assert adaptability(trembling).index == pytest.approx(6.867)


def test_a_queue_that_the_spike_moves_for_a_moment_is_moved() -> None:
    found = adaptability(steps((30, 1000, 5), (4, 4000, 5), (0.5, 4000, 60), (7.5, 4000, 5), (60, 1000, 5)))
    assert found.recoveries[0].minimum_level == pytest.approx(1 / 60)
    assert found.k_s == pytest.approx(1.0) and 0 < (found.tau_s or 0) < 0.5


def test_the_first_state_is_the_mean_queue_and_not_the_mean_inverse() -> None:
    # 10 and 90 by turns: a mean queue of 50, though the mean inverse is that of 18.
    turns = [(0.1, 1000, 10 + 80 * (n % 2)) for n in range(300)]
    found = adaptability(steps(*turns, (5, 5000, 900), (60, 1000, 100)))
    assert found.recoveries[0].first_level == pytest.approx(1 / 50)
    assert found.k_s == pytest.approx(0.5)


@pytest.mark.parametrize("queued", [0, 1])
def test_a_spike_at_a_queue_of_one_tuple_is_not_judged(queued: float) -> None:
    assert steps((1, 10, queued)).inverse_queue.tolist() == [1.0] * 10
    # Two tuples instead of one would be half of what it was.
    found = adaptability(steps((20, 1000, queued), (5, 5000, 400), (40, 1000, 2)))
    assert found.index is None and "no more than one tuple waited" in found.reason
    (recovery,) = found.recoveries
    assert recovery.index is None and recovery.settled


def test_a_spike_that_the_end_cuts_off_is_not_judged_and_the_others_are() -> None:
    parts = ((20, 1000, 100), (5, 5000, 900), (60, 1000, 100))
    whole = adaptability(steps(*parts))
    cut = adaptability(steps(*parts, (5, 5000, 900), (10, 1000, 800), (1, 1000, 400)))
    assert [bool(recovery.not_judged) for recovery in cut.recoveries] == [False, True]
    assert cut.recoveries[1].not_judged == "the run ends before the recovery"
    assert (cut.index, cut.k_s, cut.tau_s) == (whole.index, whole.k_s, whole.tau_s)
    # Neither moved nor over: what it would have done is not known.
    within = adaptability(steps((30, 1000, 5), (12, 4000, 5)))
    assert within.index is None and "the run ends before the recovery" in within.reason


def test_an_injected_spike_is_judged_also_where_the_input_hides_it() -> None:
    hidden = steps((30, 1000, 100), (10, 1300, 800), (60, 1000, 200))
    assert adaptability(hidden).index is None
    found = adaptability(hidden, [(30.0, 40.0)])
    (recovery,) = found.recoveries
    assert recovery.injected and recovery.onset_s == pytest.approx(30.1)
    assert found.k_s == pytest.approx(0.5)


def test_an_injected_spike_that_is_found_too_is_one_spike_from_where_it_was_put_on() -> None:
    seen = steps((30, 1000, 100), (10, 5000, 800), (60, 1000, 100), (5, 5000, 800), (60, 1000, 100))
    found = adaptability(seen, [(30.0, 42.0)])
    assert [(recovery.injected, round(recovery.end_s)) for recovery in found.recoveries] == [(True, 42), (False, 106)]
    # One that begins at once has no state before it, one after the end did not happen.
    assert adaptability(steps((60, 1000, 50)), [(0.5, 10.0), (90.0, 95.0)]).recoveries == ()


def test_a_queue_shorter_than_before_is_fully_recovered() -> None:
    assert adaptability(steps((20, 1000, 100), (5, 5000, 900), (40, 1000, 20))).k_s == 1.0


def test_a_spike_that_never_ends_is_judged_by_the_state_reached_in_it() -> None:
    # Input stays up; the queue grows, then a larger system holds it at twice of what it was.
    growing = [(0.1, 5000, 100 + 20 * n) for n in range(50)]
    shrinking = [(0.1, 5000, 1100 - 30 * n) for n in range(30)]
    found = adaptability(steps((20, 1000, 100), *growing, *shrinking, (60, 5000, 200)))
    (recovery,) = found.recoveries
    assert recovery.settled
    assert recovery.end_s == pytest.approx(88.0, abs=0.2)
    assert found.k_s == pytest.approx(0.5, rel=0.02)
    assert found.tau_s == pytest.approx(3.0, abs=0.2)


def test_a_queue_that_only_grows_never_settles_and_all_of_the_time_counts() -> None:
    growing = [(0.1, 5000, 100 + 50 * n) for n in range(600)]
    found = adaptability(steps((20, 1000, 100), *growing))
    (recovery,) = found.recoveries
    assert not recovery.settled
    assert recovery.tau_s == pytest.approx(60.0, abs=0.5)
    assert found.k_s is not None and found.k_s < 0.01
    assert found.index == 0.0


def test_a_recovery_that_the_run_does_not_see_to_its_end_is_no_stable_state() -> None:
    shrinking = [(0.1, 1000, 4000 - 20 * n) for n in range(150)]
    (recovery,) = adaptability(steps((20, 1000, 100), (5, 5000, 4000), *shrinking)).recoveries
    assert not recovery.settled and recovery.not_judged
    assert recovery.tau_s == pytest.approx(15.0, abs=0.2)
    # When there was time enough to recover in, it counts.
    slowly = [(0.1, 1000, 4000 - 8 * n) for n in range(400)]
    found = adaptability(steps((20, 1000, 100), (5, 5000, 4000), *slowly))
    assert not found.recoveries[0].settled and not found.recoveries[0].not_judged
    assert found.tau_s == pytest.approx(40.0, abs=0.2)


def test_two_spikes_that_overlap_are_one() -> None:
    found = adaptability(steps((20, 1000, 100), (4, 4000, 2000), (4, 9000, 5000), (4, 4000, 3000), (60, 1000, 100)))
    (recovery,) = found.recoveries
    assert recovery.end_s - recovery.onset_s == pytest.approx(12.0, abs=1.0)
    assert recovery.minimum_level == pytest.approx(1 / 5000)


def test_a_spike_that_comes_before_the_queue_has_recovered_belongs_to_the_one_before() -> None:
    draining = [(0.1, 1000, 4000 - 40 * n) for n in range(40)]
    found = adaptability(steps((20, 1000, 100), (4, 5000, 4000), *draining, (4, 5000, 6000), (60, 1000, 100)))
    (recovery,) = found.recoveries
    assert recovery.onset_s == pytest.approx(20.1, abs=0.2)
    assert recovery.minimum_level == pytest.approx(1 / 6000)
    assert recovery.k_s == pytest.approx(1.0)


def test_the_run_has_the_mean_of_its_spikes() -> None:
    found = adaptability(steps((20, 1000, 100), (5, 5000, 900), (60, 1000, 100), (5, 5000, 900), (60, 1000, 200)))
    assert [recovery.k_s for recovery in found.recoveries] == pytest.approx([1.0, 0.5])
    assert found.k_s == pytest.approx(0.75)
    assert found.index == pytest.approx(np.mean([recovery.index for recovery in found.recoveries]))


def test_slow_growth_and_a_drop_are_no_spikes() -> None:
    slow = 1000 * np.exp(np.arange(6000) / 3000)
    assert find_spikes(slow, 0.1) == []
    assert find_spikes(np.concatenate([np.full(300, 1000.0), np.full(300, 100.0)]), 0.1) == []


def test_the_noise_of_small_counts_is_no_spike() -> None:
    random = np.random.default_rng(5)
    assert find_spikes(random.poisson(0.5, 6000) / 0.1, 0.1) == []


def test_a_spike_in_the_first_seconds_has_no_state_to_compare_with() -> None:
    rate = np.concatenate([np.full(10, 1000.0), np.full(50, 5000.0), np.full(300, 1000.0)])
    assert find_spikes(rate, 0.1) == []


def test_spikes_are_found_where_they_are() -> None:
    rate = np.concatenate([np.full(200, 1000.0), np.full(50, 5000.0), np.full(300, 1000.0), np.full(50, 3000.0)])
    first, second = find_spikes(rate, 0.1)
    assert first.onset == 200
    assert 250 <= first.end <= 260
    assert second == Spike(550, 600)


def test_queues_that_run_empty_after_the_input_ended_are_not_recovered() -> None:
    held = adaptability(steps((20, 1000, 100), (5, 5000, 900), (60, 1000, 400)))
    emptied = adaptability(steps((20, 1000, 100), (5, 5000, 900), (60, 1000, 400), (60, 0, 0)))
    assert held == emptied
    assert emptied.k_s == pytest.approx(0.25)
    assert adaptability(steps((20, 0, 5))).index is None
