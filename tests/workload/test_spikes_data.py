"""Data spikes: hot keys take their share for a while, and no tuple changes its time."""

import hashlib
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spikes import PATIENT, generator, hot_workload, outlines

from elastream.errors import SettingError
from elastream.workload import DataSpike, Keys, VolumeSpike, constant, with_popularity, with_spikes
from elastream.workload.data_spikes import draw_popularity

# What came out when this was written.
GOLDEN_HOT = [1251, 1715, 1374]
GOLDEN_KEYS = "38a26d315afeaee8"


def test_a_data_spike_changes_no_due_time() -> None:
    arrivals = hot_workload()
    assert (arrivals.ends_s, arrivals.counts) == (constant(1000, 100).ends_s, constant(1000, 100).counts)


@settings(deadline=None, max_examples=25)
@given(share=st.floats(0.02, 1), hot_keys=st.integers(1, 20), seed=st.integers(0, 10**6), skew=st.floats(0, 0.9))
def test_the_share_at_the_peak_goes_to_the_hot_keys(share: float, hot_keys: int, seed: int, skew: float) -> None:
    arrivals = hot_workload(share, hot_keys, seed, skew=skew)
    choose = arrivals.keys.among(2000)
    hot = choose.hot(arrivals.keys.spells[0])
    assert len(set(hot.tolist())) == hot_keys
    # In normal times everything goes to a place that is none, so that what goes to hot keys can be counted.
    numbers = np.arange(arrivals.total)
    is_hot = np.isin(choose(numbers, np.full(arrivals.total, -1)), hot)
    assert not is_hot[:20_000].any()
    assert not is_hot[60_000:].any()
    deviation = np.sqrt(40_000 * share * (1 - share))
    assert abs(is_hot.sum() - 40_000 * share) <= 6 * deviation + 1


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_each_hot_key_is_as_popular_as_was_drawn(seed: int) -> None:
    arrivals = hot_workload(share=1.0, hot_keys=5, seed=seed)
    spell = arrivals.keys.spells[0]
    choose = arrivals.keys.among(100)
    counts = np.bincount(choose(np.arange(20_000, 60_000)), minlength=100)[choose.hot(spell)]
    assert sum(spell.popularity) == pytest.approx(1)
    for count, popularity in zip(counts, spell.popularity, strict=True):
        assert abs(count - 40_000 * popularity) <= 6 * np.sqrt(40_000 * popularity * (1 - popularity)) + 1


@PATIENT
@given(
    cuts=st.lists(st.integers(0, 3000), max_size=6),
    zipf=st.sampled_from([0.0, 1.1]),
    outlines=st.lists(outlines(), min_size=1, max_size=3),
)
def test_a_key_does_not_depend_on_the_batch_it_is_asked_in(
    cuts: list[int], zipf: float, outlines: list[dict[str, float | None]]
) -> None:
    spikes = [DataSpike(**outline, hot_keys=4, share=0.6) for outline in outlines]  # type: ignore[arg-type]
    arrivals = with_popularity(with_spikes(constant(30, 100), spikes, 3), zipf, 3)
    choose = arrivals.keys.among(500)
    whole = choose(np.arange(3000))
    ends = [0, *sorted(cuts), 3000]
    parts = [choose(np.arange(low, high)) for low, high in pairwise(ends)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert choose(np.arange(3000)[::-1])[::-1].tolist() == whole.tolist()
    assert arrivals.part(700, 900).keys.among(500)(np.arange(700, 900)).tolist() == whole[700:900].tolist()
    assert pickle.loads(pickle.dumps(choose))(np.arange(3000)).tolist() == whole.tolist()
    assert 0 <= whole.min() <= whole.max() < 500


def test_keys_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    def digest(seed: int) -> str:
        return hashlib.sha256(hot_workload(seed=seed).keys.among(2000)(np.arange(100_000)).tobytes()).hexdigest()

    assert digest(1) == digest(1)
    assert len({digest(seed) for seed in range(5)}) == 5


def test_keys_are_to_the_byte_what_they_were() -> None:
    keys = hot_workload(seed=1).keys.among(2000)
    assert keys.hot(keys.keys.spells[0]).tolist() == GOLDEN_HOT
    assert hashlib.sha256(keys(np.arange(100_000)).astype("<i8").tobytes()).hexdigest()[:16] == GOLDEN_KEYS


def test_the_share_grows_and_shrinks_with_the_outline() -> None:
    spike = DataSpike(at_s=0, time_to_peak_s=40, peak_s=20, duration_s=100, hot_keys=1, share=0.8)
    spell = with_spikes(constant(1000, 100), [spike]).keys.spells[0]
    shares = spell.share_of(np.asarray([0, 10_000, 20_000, 30_000, 40_000, 59_999, 80_000, 99_999]))
    assert shares == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.4, 0], abs=0.0201)
    assert shares[4:6].tolist() == [0.8, 0.8]


def test_a_spike_in_seconds_follows_the_tuples_that_a_volume_spike_adds() -> None:
    volume = VolumeSpike(at_s=10, duration_s=10, peak_s=10, magnitude=5)
    data = DataSpike(at_s=30, duration_s=10, peak_s=10, hot_keys=1, share=1.0)
    together = with_spikes(constant(100, 50), [data, volume])
    later = with_spikes(with_spikes(constant(100, 50), [data]), [volume])
    for arrivals in (together, later):
        # Ten seconds with four times as many tuples more are before it.
        assert (arrivals.keys.spells[0].bounds[0], arrivals.keys.spells[0].bounds[-1]) == (3000 + 4000, 4000 + 4000)
    assert later.keys == together.keys


def test_where_data_spikes_overlap_the_later_one_takes_its_share_first() -> None:
    early = DataSpike(at_s=10, duration_s=60, peak_s=60, hot_keys=1, share=0.5)
    late = DataSpike(at_s=40, duration_s=60, peak_s=60, hot_keys=1, share=0.6)
    for spikes in ([early, late], [late, early]):
        keys = with_spikes(constant(1000, 100), spikes, 9).keys
        assert [spell.spike for spell in keys.spells] == [early, late]
        choose = keys.among(1_000_000)
        first, second = (choose.hot(spell)[0] for spell in keys.spells)
        chosen = choose(np.arange(40_000, 70_000))
        assert abs(np.mean(chosen == second) - 0.6) < 6 * np.sqrt(0.24 / 30_000)
        assert abs(np.mean(chosen == first) - 0.5 * 0.4) < 6 * np.sqrt(0.16 / 30_000)


def test_hot_keys_are_equal_without_skew_and_differ_by_as_much_as_it_says() -> None:
    def draw(skew: float, seed: int) -> tuple[float, ...]:
        return draw_popularity(DataSpike(at_s=0, duration_s=1, hot_keys=8, share=1, skew=skew), generator(seed))

    assert draw(0, 1) == (1 / 8,) * 8
    for skew in (0.05, 0.3, 0.7):
        drawn = np.asarray([draw(skew, seed) for seed in range(2000)])
        assert drawn.sum(axis=1) == pytest.approx(np.ones(2000))
        # Over the greatest possible variance, when one of eight has it all.
        assert np.mean((drawn - 1 / 8) ** 2) / (7 / 64) == pytest.approx(skew, rel=0.1)


def test_in_normal_times_keys_are_equally_popular_or_follow_zipf() -> None:
    numbers = np.arange(100_000)
    even = np.bincount(Keys().among(50)(numbers), minlength=50)
    assert np.abs(even - 2000).max() < 6 * np.sqrt(2000)
    arrivals = with_popularity(constant(10, 10), zipf=1.0, seed=4)
    counts = np.sort(np.bincount(arrivals.keys.among(50)(numbers), minlength=50))[::-1]
    shares = 1 / np.arange(1, 51)
    expected = 100_000 * shares / shares.sum()
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected[0])
    with pytest.raises(SettingError, match=r"^zipf must be 0 \(all keys the same\) or more, got -1"):
        with_popularity(constant(10, 10), zipf=-1)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"hot_keys": 0}, "hot_keys must be a whole number from 1 on, got 0"),
        ({"hot_keys": 1.5}, "hot_keys must be a whole number from 1 on, got 1.5"),
        ({"share": 0.0}, "share must be more than 0 and at most 1, got 0.0"),
        ({"share": 1.1}, "share must be more than 0 and at most 1, got 1.1"),
        ({"skew": 1.0}, "skew must be from 0 to less than 1, got 1.0"),
    ],
)
def test_a_data_spike_that_cannot_be_says_why(values: dict[str, float], said: str) -> None:
    right = {"at_s": 10.0, "duration_s": 30.0, "hot_keys": 3, "share": 0.5}
    with pytest.raises(SettingError) as caught:
        DataSpike(**{**right, **values})  # type: ignore[arg-type]
    assert str(caught.value) == f"spike at_s=10: {said}"


def test_more_hot_keys_than_keys_are_refused_when_the_keys_are_known() -> None:
    with pytest.raises(SettingError) as caught:
        hot_workload(hot_keys=3000).keys.among(2000)
    assert str(caught.value) == ("spike at_s=20: hot_keys must be from 1 to 2000, as many as there are keys, got 3000")


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(SettingError, match=r"^seed must be a whole number from 0 on, got "):
        with_spikes(constant(1, 1), [], seed)  # type: ignore[arg-type]
