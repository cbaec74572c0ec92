"""The chart of containers: how many hosts and executors were planned, and how many were there."""

from collections.abc import Sequence

import numpy as np

from elastream.report.pages.charts import Chart, Line, ink
from elastream.report.pages.words import span
from elastream.report.scores.containers import FleetSample
from elastream.report.thinning import changes


def fleet_charts(samples: Sequence[FleetSample], until_s: float) -> list[Chart]:
    """One chart of the levels that changed; none when no level did."""
    t_s = np.array([sample.t_s for sample in samples], dtype=np.float64)
    lines: list[Line] = []
    came: list[str] = []
    for position, name in enumerate(samples[-1].levels if samples else ()):
        counts = [sample.levels[name] for sample in samples if name in sample.levels]
        if len({(count.planned, count.there) for count in counts}) < 2 or len(counts) != len(samples):
            continue
        for kind, dash in (("there", 0), ("planned", 1)):
            y = np.array([getattr(count, kind) for count in counts], dtype=np.float64)
            lines.append(Line(f"{name}s {kind}", *changes(t_s, y), ink(position), "step", dash))
        if counts[-1].measured:
            came.append(f"{'an' if name == 'executor' else 'a'} {name} in {span(counts[-1].start_s)}")
    if not lines:
        return []
    caption = f"As the newest came: {', '.join(came)}." if came else "None had to be started."
    return [Chart("fleet", "Threads, processes and machines", caption, "replicas", tuple(lines), until_s)]
