"""Workloads and spikes said in words, and what is answered to words that say nothing."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spikes import PATIENT

from elastream.errors import SettingError
from elastream.workload import DataSpike, VolumeSpike, constant, parse_calm, parse_spikes, parse_workload


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
        (
            "away.csv",
            [],
            f"workload 'away.csv': no such file; looked in {Path.cwd()}; name its "
            "directory with $ELASTREAM_TRACES, or elastream bench --traces",
        ),
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
        ("covid_tweets", ["at_s=1,at_s=2"], "spike 'at_s=1,at_s=2': at_s is said twice, '1' and '2'; leave one out"),
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
