"""Spikes on a workload: more tuples, hot keys, spikes by chance, and the words they are said in."""

import hashlib
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.apps import dns, tweets, tweets_complex
from elastream.apps.dns_payload import dns_payload
from elastream.apps.tweet_payload import tweet_payload
from elastream.engine.sources import Replay
from elastream.errors import SettingError
from elastream.workload import (
    Arrivals,
    DataSpike,
    Keys,
    VolumeSpike,
    constant,
    formula,
    parse_calm,
    parse_spikes,
    parse_workload,
    random_spikes,
    with_popularity,
    with_spikes,
)
from elastream.workload.counter_hash import fractions, shuffled
from elastream.workload.data_spikes import draw_popularity

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=60)

# What came out when this was written; payloads, before there were hot keys.
GOLDEN_FRACTIONS = [0.28176129772258496, 0.6524484863740322, 0.7012121095215252, 0.31707250881388327]
GOLDEN_HOT = [1251, 1715, 1374]
GOLDEN_KEYS = "38a26d315afeaee8"
GOLDEN_TWEETS = "997528dec2477563"
GOLDEN_QUERIES = "b51fbffa5892753e"


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@st.composite
def _outlines(draw: st.DrawFn) -> dict[str, float | None]:
    """Spikes that may begin at once, rise at once, have no peak to speak of, or outlast a run of 100 s."""
    duration_s = draw(st.floats(0.5, 60))
    time_to_peak_s = draw(st.sampled_from([0.0, 1.0]) | st.floats(0, 1)) * duration_s
    left_s = duration_s - time_to_peak_s
    return {
        "at_s": draw(st.just(0.0) | st.floats(0, 99)),
        "duration_s": duration_s,
        "time_to_peak_s": time_to_peak_s,
        "peak_s": draw(st.none() | st.sampled_from([0.0, 1.0]).map(lambda part: part * left_s)),
    }


@st.composite
def _volume_spikes(draw: st.DrawFn) -> VolumeSpike:
    return VolumeSpike(**draw(_outlines()), magnitude=draw(st.floats(1, 20)))


@st.composite
def _workloads(draw: st.DrawFn) -> Arrivals:
    """Runs of 100 s in ten uneven steps."""
    rates = draw(st.lists(st.integers(0, 400), min_size=10, max_size=10).filter(any))
    cuts = draw(st.lists(st.integers(1, 999), min_size=9, max_size=9, unique=True))
    ends = np.asarray([0, *sorted(cuts), 1000]) / 10
    return Arrivals(tuple(ends.tolist()), (0.0, *np.cumsum(np.diff(ends) * rates).tolist()))


# -- volume spikes


def test_a_spike_rises_stays_and_falls_between_its_four_corners() -> None:
    spike = VolumeSpike(at_s=60, time_to_peak_s=5, peak_s=10, duration_s=35, magnitude=4)
    assert spike.corners_s == (60, 65, 75, 95)
    seconds = np.asarray([0, 60, 62.5, 65, 70, 75, 80, 85, 95, 99])
    assert spike.multiplier(seconds).tolist() == [1, 1, 2.5, 4, 4, 4, 3.25, 2.5, 1, 1]


def test_without_a_length_of_the_peak_half_of_what_is_left_is_peak_and_half_is_decay() -> None:
    assert VolumeSpike(at_s=60, time_to_peak_s=10, duration_s=30, magnitude=4).corners_s == (60, 70, 80, 90)


def test_a_spike_without_time_to_peak_is_there_at_once() -> None:
    arrivals = with_spikes(constant(100, 100), [VolumeSpike(at_s=20, duration_s=10, peak_s=10, magnitude=3)])
    assert [arrivals.per_second(second) for second in (19.9, 20, 29.9, 30.1)] == pytest.approx([100, 300, 300, 100])
    assert arrivals.total == 100 * 100 + 200 * 10


def test_a_spike_on_a_constant_rate_adds_its_area() -> None:
    spike = VolumeSpike(at_s=20, time_to_peak_s=10, peak_s=10, duration_s=40, magnitude=5)
    arrivals = with_spikes(constant(100, 100), [spike])
    # Half of ten seconds, ten seconds, half of twenty seconds, each with four times as many tuples more.
    assert arrivals.total == 100 * 100 + 4 * 100 * (5 + 10 + 10)
    assert arrivals.due_by(20) == 2000
    assert arrivals.due_by(30) == 2000 + 1000 + 4 * 100 * 5
    assert arrivals.per_second(35) == pytest.approx(500)


@PATIENT
@given(spike=_volume_spikes())
def test_the_multiplier_is_one_outside_and_exactly_the_magnitude_at_the_peak(spike: VolumeSpike) -> None:
    onset, peak, falls, over = spike.corners_s
    assert onset <= peak <= falls <= over
    at_peak = spike.multiplier(np.asarray([peak, falls]))
    assert at_peak.tolist() == [spike.magnitude, spike.magnitude]
    assert spike.multiplier(np.asarray([onset - 1e-6, over + 1e-6, -1.0, 1e9])).tolist() == [1, 1, 1, 1]
    between = spike.multiplier(np.linspace(onset, over, 57))
    assert np.all((between >= 1) & (between <= spike.magnitude))


@PATIENT
@given(arrivals=_workloads(), spikes=st.lists(_volume_spikes(), min_size=1, max_size=3))
def test_outside_its_spikes_a_workload_is_what_it_was(arrivals: Arrivals, spikes: list[VolumeSpike]) -> None:
    spiked = with_spikes(arrivals, spikes)
    assert spiked.seconds == arrivals.seconds
    for second in np.linspace(0.05, 99.95, 97):
        if all(second < spike.at_s - 1e-3 or second > spike.corners_s[3] + 1e-3 for spike in spikes):
            assert spiked.per_second(second) == pytest.approx(arrivals.per_second(second), rel=1e-6, abs=1e-6)


@PATIENT
@given(arrivals=_workloads(), spikes=st.lists(_volume_spikes(), min_size=1, max_size=3))
def test_the_total_is_the_integral_of_rate_times_multiplier(arrivals: Arrivals, spikes: list[VolumeSpike]) -> None:
    spiked = with_spikes(arrivals, spikes)
    corners = [corner for spike in spikes for corner in spike.corners_s if corner < 100]
    ends = np.unique([*arrivals.ends_s, *corners])
    # Between two of these the rate is constant and the multiplier straight: its value in the middle is its mean.
    middles, lengths = (ends[:-1] + ends[1:]) / 2, np.diff(ends)
    added = sum((spike.multiplier(middles) - 1 for spike in spikes), np.zeros(len(middles)))
    rates = np.asarray([arrivals.per_second(second) for second in middles])
    assert spiked.counts[-1] == pytest.approx(float(np.sum(rates * (1 + added) * lengths)), rel=1e-6)
    assert np.all(np.diff(spiked.counts) >= 0)
    assert np.all(np.diff(spiked.ends_s) > 0)


@PATIENT
@given(spike=_volume_spikes(), rate=st.integers(1, 500))
def test_a_peak_that_lasts_has_the_magnitude_times_the_normal_rate(spike: VolumeSpike, rate: int) -> None:
    _, peak, falls, _ = spike.corners_s
    if falls - peak > 0.01 and falls < 100:
        spiked = with_spikes(constant(rate, 100), [spike])
        assert spiked.per_second((peak + falls) / 2) == pytest.approx(rate * spike.magnitude, rel=1e-6)


def test_what_overlapping_spikes_add_adds_up() -> None:
    one = VolumeSpike(at_s=10, duration_s=40, peak_s=40, magnitude=3)
    two = VolumeSpike(at_s=30, duration_s=40, peak_s=40, magnitude=4)
    for spikes in ([one, two], [two, one]):
        arrivals = with_spikes(constant(100, 100), spikes)
        assert [round(arrivals.per_second(second), 6) for second in (5, 20, 40, 60, 80)] == [100, 300, 600, 400, 100]
    # One after the other is another thing: the second one multiplies what the first one has made.
    after = with_spikes(with_spikes(constant(100, 100), [one]), [two])
    assert after.per_second(40) == pytest.approx(1200)


def test_a_spike_that_outlasts_the_workload_is_cut_off() -> None:
    arrivals = with_spikes(constant(100, 60), [VolumeSpike(at_s=50, duration_s=100, peak_s=100, magnitude=2)])
    assert (arrivals.seconds, arrivals.total) == (60, 60 * 100 + 10 * 100)


def test_a_workload_without_spikes_is_the_same_workload() -> None:
    arrivals = formula(lambda t: 50 + t, 10)
    assert with_spikes(arrivals, []) == arrivals


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"magnitude": 0.5}, "magnitude must be 1 or more, the rate at the peak over the normal rate, got 0.5"),
        (
            {"magnitude": float("inf")},
            "magnitude must be 1 or more, the rate at the peak over the normal rate, got inf",
        ),
        ({"at_s": -1.0}, "at_s must be 0 or more, got -1.0"),
        ({"duration_s": 0.0}, "duration_s must be more than 0, got 0.0"),
        ({"duration_s": float("nan")}, "duration_s must be more than 0, got nan"),
        ({"time_to_peak_s": 31.0}, "time_to_peak_s must be from 0 to duration_s=30, got 31.0"),
        ({"peak_s": 26.0}, "peak_s must be from 0 to duration_s - time_to_peak_s = 25, got 26.0"),
    ],
)
def test_a_spike_that_cannot_be_says_why(values: dict[str, float], said: str) -> None:
    right = {"at_s": 10.0, "duration_s": 30.0, "time_to_peak_s": 5.0, "magnitude": 2.0}
    with pytest.raises(SettingError) as caught:
        VolumeSpike(**{**right, **values})
    assert str(caught.value) == f"spike at_s={values.get('at_s', 10.0):g}: {said}"


def test_a_spike_after_the_end_is_refused() -> None:
    with pytest.raises(
        SettingError, match=r"^spike at_s=60: the workload is over after 60 s; at_s must be less, in seconds of"
    ):
        with_spikes(constant(1, 60), [VolumeSpike(at_s=60, duration_s=1, magnitude=2)])


# -- hashes by number


def test_fractions_are_the_same_in_every_process_and_version() -> None:
    numbers = np.asarray([0, 1, 2, 10**12])
    assert fractions(numbers, 0).tolist() == GOLDEN_FRACTIONS
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy as np; from elastream.workload.counter_hash import fractions; "
            "print(fractions(np.asarray([0, 1, 2, 10**12]), 7).tolist())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == str(fractions(numbers, 7).tolist())


def test_fractions_are_even_and_salts_have_nothing_in_common() -> None:
    numbers = np.arange(200_000)
    one, two = fractions(numbers, 1), fractions(numbers, 2)
    assert one.min() >= 0
    assert one.max() < 1
    counts = np.histogram(one, 100, (0, 1))[0]
    # Chi-squared with 99 degrees of freedom: mean 99, standard deviation 14.
    assert np.sum((counts - 2000) ** 2 / 2000) < 99 + 6 * 14
    assert abs(np.corrcoef(one, two)[0, 1]) < 6 / np.sqrt(200_000)
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 6 / np.sqrt(200_000)


def test_an_order_has_every_number_once() -> None:
    assert sorted(shuffled(1000, 5)) == list(range(1000))
    assert shuffled(1000, 5).tolist() != shuffled(1000, 6).tolist()


# -- data spikes


def hot_workload(share: float = 0.5, hot_keys: int = 3, seed: int = 1, **more: float) -> Arrivals:
    spike = DataSpike(at_s=20, duration_s=40, peak_s=40, hot_keys=hot_keys, share=share, **more)
    return with_spikes(constant(1000, 100), [spike], seed)


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
    outlines=st.lists(_outlines(), min_size=1, max_size=3),
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


# -- spikes by chance


@PATIENT
@given(seed=st.integers(0, 10**9), seconds=st.floats(1, 10**6), count=st.integers(1, 8))
def test_random_spikes_fit_the_run_and_are_the_same_for_the_same_seed(seed: int, seconds: float, count: int) -> None:
    spikes = random_spikes(generator(seed), seconds, count)
    assert spikes == random_spikes(generator(seed), seconds, count)
    assert count <= len(spikes) <= 2 * count
    assert [spike.at_s for spike in spikes] == sorted(spike.at_s for spike in spikes)
    for spike in spikes:
        assert 0 <= spike.at_s < spike.corners_s[3] <= seconds * (1 + 1e-9)
        if isinstance(spike, VolumeSpike):
            assert 1.4 < spike.magnitude <= 12
        else:
            assert 1 <= spike.hot_keys <= 64


def test_random_spikes_are_of_all_kinds() -> None:
    spikes = random_spikes(generator(1), 1000, 500)
    volumes = [spike.magnitude for spike in spikes if isinstance(spike, VolumeSpike)]
    hot = [spike.hot_keys for spike in spikes if isinstance(spike, DataSpike)]
    assert len(volumes) > 250
    assert len(hot) > 200
    # Long tails: most are low, and a few are far above.
    assert np.median(volumes) < 3 < 9 < max(volumes)
    assert np.median(hot) < 6 < 40 < max(hot)


def test_a_random_spike_can_be_typed_in_again() -> None:
    for spike in random_spikes(generator(5), 300, 10):
        word = ",".join(f"{name}={value}" for name, value in vars(spike).items())
        assert parse_spikes([word], seconds=300) == (spike,)


# -- in words


def test_a_shape_in_words_is_the_shape() -> None:
    assert parse_workload("constant:per_second=200,seconds=60") == constant(200, 60)
    assert parse_workload("steps:rates=100/500/100,seconds=60").counts == (0.0, 2000.0, 12000.0, 14000.0)
    assert parse_workload("daily:per_second=200,seconds=120,days=2").total == 24_000


def test_speed_and_scale_hold_for_shapes_too() -> None:
    plain = parse_calm("steps:rates=100/500/100,seconds=60")
    other = parse_calm("steps:rates=100/500/100,seconds=60", speed=4, scale=0.5)
    assert (other.seconds, other.total) == (15, 7000)
    assert other.per_second(7) == pytest.approx(plain.per_second(28) * 4 * 0.5)


def test_times_of_spikes_are_seconds_of_the_compressed_run() -> None:
    arrivals = parse_workload(
        "covid_tweets", speed=10, spikes=["at_s=100,duration_s=20,peak_s=20,magnitude=3,hot_keys=2,share=1"]
    )
    calm = parse_calm("covid_tweets", speed=10)
    assert arrivals.seconds == 270
    assert arrivals.per_second(110) == pytest.approx(3 * calm.per_second(110))
    assert arrivals.per_second(99) == pytest.approx(calm.per_second(99))
    assert arrivals.keys.spells[0].bounds[0] == calm.due_by(100)


def test_one_word_may_be_a_volume_spike_and_a_data_spike_at_once() -> None:
    times = {"at_s": 60.0, "duration_s": 30.0, "time_to_peak_s": 5.0}
    word = "at_s=60, duration_s=30, time_to_peak_s=5, magnitude=4, hot_keys=3, share=0.5, skew=0.2"
    assert parse_spikes([word], seconds=300) == (
        VolumeSpike(**times, magnitude=4.0),
        DataSpike(**times, hot_keys=3, share=0.5, skew=0.2),
    )


@PATIENT
@given(seed=st.integers(0, 1000), count=st.integers(1, 4))
def test_the_same_words_and_seed_give_the_same_workload_to_the_byte(seed: int, count: int) -> None:
    def once() -> bytes:
        return pickle.dumps(
            parse_workload("covid_tweets", speed=20, spikes=[f"random:count={count}"], seed=seed, zipf=1)
        )

    assert once() == once()


@pytest.mark.parametrize(
    ("word", "spikes", "said"),
    [
        ("covid_twets", [], "workload 'covid_twets': no such trace, file or shape; did you mean 'covid_tweets'?"),
        ("sinus:low=1", [], "workload 'sinus:low=1': no such trace, file or shape; did you mean 'sine'?"),
        (
            "sine",
            [],
            "workload 'sine': expected low, high, period_s, seconds too; add low=...,high=...,period_s=...,seconds=...",
        ),
        ("ramp:start=1,end=2", [], "workload 'ramp:start=1,end=2': expected seconds too; add seconds=..."),
        (
            "ramp:start=1,end=2,secs=3",
            [],
            "workload 'ramp:start=1,end=2,secs=3': there is no 'secs'; did you mean 'seconds'?",
        ),
        ("ramp:start=1,end", [], "workload 'ramp:start=1,end': expected name=number, got 'end'; for example start=60"),
        ("ramp:start=1,end=x,seconds=2", [], "workload 'ramp:start=1,end=x,seconds=2': end must be a number, got 'x'"),
        (
            "steps:rates=1/b,seconds=2",
            [],
            "workload 'steps:rates=1/b,seconds=2': rates must be numbers like 1/2/3, got '1/b'",
        ),
        (
            "daily:per_second=1,days=1.5",
            [],
            "workload 'daily:per_second=1,days=1.5': days must be a whole number, got '1.5'",
        ),
        (
            "ramp:start=0,end=0,seconds=2",
            [],
            "workload 'ramp:start=0,end=0,seconds=2': ramp: start and end must not all be 0, got nothing but zeros",
        ),
        (
            "covid_tweets",
            ["at_s=1,duration_s=2"],
            "spike 'at_s=1,duration_s=2': expected magnitude for more tuples, or hot_keys and share for hot keys, or all three",
        ),
        (
            "covid_tweets",
            ["at_s=1,magnitude=2"],
            "spike 'at_s=1,magnitude=2': expected duration_s too; add duration_s=...",
        ),
        (
            "covid_tweets",
            ["at_s=1,duration_s=2,hot_keys=3"],
            "spike 'at_s=1,duration_s=2,hot_keys=3': expected share too; add share=...",
        ),
        (
            "covid_tweets",
            ["at_s=1,duration_s=2,magnitud=3"],
            "spike 'at_s=1,duration_s=2,magnitud=3': there is no 'magnitud'; did you mean 'magnitude'?",
        ),
        ("covid_tweets", ["at_s=1,at_s=2"], "spike 'at_s=1,at_s=2': at_s is said twice, 1 and 2; leave one out"),
        ("covid_tweets", ["random:cuont=2"], "spike 'random:cuont=2': there is no 'cuont'; did you mean 'count'?"),
        ("covid_tweets", ["random:count=0"], "random spikes: count must be a whole number from 1 on, got 0"),
        (
            "covid_tweets",
            ["at_s=9999,duration_s=1,magnitude=2"],
            "spike at_s=9999: the workload is over after 2700 s; at_s must be less, in seconds of the run after speed",
        ),
    ],
)
def test_words_that_say_nothing_are_told_what_was_expected(word: str, spikes: list[str], said: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_workload(word, spikes=spikes)
    assert str(caught.value) == said


# -- in the applications


def _digest(made: dict[str, object]) -> str:
    words = "\n".join(str(column.to_pylist()) for column in made.values())  # type: ignore[attr-defined]
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def test_without_data_spikes_payloads_are_to_the_byte_what_they_were() -> None:
    assert _digest(tweet_payload()(np.arange(5000))) == GOLDEN_TWEETS
    assert _digest(dns_payload()(np.arange(5000))) == GOLDEN_QUERIES


@pytest.mark.parametrize("app", [tweets, tweets_complex, dns])
def test_an_application_follows_the_hot_keys_of_its_workload(
    app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is classified here, so that no model has to be trained.
    for model in ("topic_model", "author_model", "kind_model", "mood_model", "dns_model"):
        monkeypatch.setattr(app, model, lambda: SimpleNamespace(bigrams=None, verdict=None), raising=False)
    arrivals = hot_workload(share=0.6, hot_keys=2)
    calm, hot = (
        app.topology(workload, database=str(tmp_path / "unused.sqlite")).build().sources[0].source
        for workload in (constant(1000, 100), arrivals)
    )
    assert isinstance(calm, Replay)
    assert isinstance(hot, Replay)
    assert hot.arrivals is arrivals
    assert hot.rows(0, 20_000).equals(calm.rows(0, 20_000))
    during, usual = hot.rows(30_000, 40_000), calm.rows(30_000, 40_000)
    name = "name" if app is dns else "raw"
    differ = np.mean(
        [one != other for one, other in zip(during[name].to_pylist(), usual[name].to_pylist(), strict=True)]
    )
    assert differ == pytest.approx(0.6, abs=0.03)
    assert during["id"].equals(usual["id"])


def test_hot_keys_add_little_to_what_travels_to_workers() -> None:
    arrivals = parse_workload("azure_llm_conv", spikes=["random:count=6"], seed=2)
    assert len(arrivals.keys.spells) >= 3
    plain, hot = len(pickle.dumps(tweet_payload())), len(pickle.dumps(tweet_payload(None, arrivals.keys)))
    assert hot - plain < 16_000
