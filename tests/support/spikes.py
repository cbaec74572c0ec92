"""Spikes that tests share: their outlines, a workload with hot keys, and chance with a seed."""

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from elastream.workload import Arrivals, DataSpike, constant, with_spikes

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=60)


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@st.composite
def outlines(draw: st.DrawFn) -> dict[str, Any]:
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


def hot_workload(share: float = 0.5, hot_keys: int = 3, seed: int = 1, **more: float) -> Arrivals:
    spike = DataSpike(at_s=20, duration_s=40, peak_s=40, hot_keys=hot_keys, share=share, **more)
    return with_spikes(constant(1000, 100), [spike], seed)
