"""Workloads that tests share: any steps, and a trace in a file."""

from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from elastream.workload import Arrivals

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=100)


@st.composite
def any_arrivals(draw: st.DrawFn) -> Arrivals:
    """Steps of any length, many of them without a tuple, some with parts of tuples."""
    steps = draw(
        st.lists(st.tuples(st.integers(1, 5000), st.just(0) | st.integers(0, 4000)), min_size=1, max_size=12).filter(
            lambda steps: sum(count for _, count in steps) >= 8
        )
    )
    ends = np.cumsum([0, *(length for length, _ in steps)]) / 100
    # Eighths are exact in binary, so that sums of them say what they mean.
    counts = np.cumsum([0, *(count for _, count in steps)]) / 8
    return Arrivals(tuple(ends.tolist()), tuple(counts.tolist()))


def trace_file(folder: Path, *lines: str, header: str = "t_seconds,events") -> Path:
    path = folder / "trace.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path
