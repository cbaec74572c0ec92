"""The picture of a comparison: input and output, what waits, and all replicas together, one colour a scenario, a column for each input."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from elastream.report.pages.plots import rate_of
from elastream.report.series import Sample
from elastream.report.thinning import per_second
from elastream_lab.bench.suites.outcomes import Outcome

COLOURS = ("#2b6cb0", "#c53030", "#2f855a", "#b7791f", "#6b46c1", "#0987a0")


def draw_outcomes(groups: Sequence[Sequence[Outcome]], path: Path) -> None:
    """A column for each group: runs with the same input."""
    size = (11 if len(groups) == 1 else 5.5 * len(groups), 8.5)
    figure, panels = plt.subplots(3, len(groups), figsize=size, sharex="col", squeeze=False, constrained_layout=True)
    for column, outcomes in enumerate(groups):
        _draw_group(outcomes, *panels[:, column])
    rates, queues, replicas = panels[:, 0]
    rates.set_ylabel("tuples per second, in and out")
    queues.set_ylabel("queued tuples (log)")
    replicas.set_ylabel("replicas, all operators")
    figure.suptitle(groups[0][0].record.name)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_group(outcomes: Sequence[Outcome], rates: Axes, queues: Axes, replicas: Axes) -> None:
    first = outcomes[0].record
    for source in first.sources:
        t, rate = rate_of(first.series.operators[source], "input")
        rates.fill_between(t, rate, step="mid", alpha=0.2, color="#444444", label="input")
    for outcome, colour in zip(outcomes, COLOURS * len(outcomes), strict=False):
        series, pools = outcome.record.series, outcome.record.pools
        per_tick = [its for name, its in series.operators.items() if name in pools]
        times = [s.t_s for s in per_tick[0]]
        t, rate = per_second(
            np.asarray(times), np.asarray(_sum(list(series.operators.values()), "finished")), times[-1]
        )
        rates.plot(t, rate, lw=1.2, color=colour, label=outcome.label)
        queues.plot(times, np.maximum(_sum(per_tick, "queued"), 1), lw=1.2, color=colour)
        replicas.step(times, _sum(per_tick, "replicas"), where="post", lw=1.5, color=colour)
    queues.set_yscale("log")
    replicas.set_xlabel("seconds since the start")
    for panel in (rates, replicas):
        panel.set_ylim(bottom=0)
    for panel in (rates, queues, replicas):
        panel.grid(alpha=0.25)
    # Below everything, where it covers no line.
    replicas.legend(
        *rates.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=9
    )


def _sum(samples: list[list[Sample]], what: str) -> list[int]:
    """All operators together, tick by tick."""
    return [sum(getattr(sample, what) for sample in tick) for tick in zip(*samples, strict=True)]
