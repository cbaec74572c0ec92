"""Spikes by chance: they fit the run and are the same for the same seed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from spikes import PATIENT, generator

from elastream.workload import DataSpike, VolumeSpike, parse_spikes, random_spikes


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
