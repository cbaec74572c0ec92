"""The picture of a run: input against output, what waits, and the replicas, over the same time."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt

from elastream.report.series import Sample, Series
from elastream.report.thinning import per_second

Floats = npt.NDArray[np.float64]


def draw_run(
    name: str, series: Series, sources: tuple[str, ...], rescales: list[tuple[float, str, int]], path: Path
) -> None:
    """Three panels under one another; dotted lines mark the changes of replicas."""
    served = {operator: samples for operator, samples in series.operators.items() if operator not in sources}
    figure, (rates, queues, replicas) = plt.subplots(3, 1, figsize=(11, 8), sharex=True, constrained_layout=True)
    colours = dict(zip(served, plt.get_cmap("tab10").colors * 10, strict=False))  # type: ignore[attr-defined]
    for source in sources:
        t, per_second = rate_of(series.operators.get(source, []), "input")
        rates.fill_between(t, per_second, step="mid", alpha=0.25, color="#3b6ea5", label=f"input ({source})")
    for operator, samples in served.items():
        t, per_second = rate_of(samples, "processed")
        rates.plot(t, per_second, lw=1.1, color=colours[operator], label=f"{operator} processed")
        times = [s.t_s for s in samples]
        queues.plot(times, [s.queued for s in samples], lw=1.1, color=colours[operator], label=operator)
        replicas.step(
            times, [s.replicas for s in samples], where="post", lw=1.6, color=colours[operator], label=operator
        )
    for t_s, operator, after in rescales:
        for panel in (rates, queues, replicas):
            panel.axvline(t_s, color=colours.get(operator, "grey"), lw=0.7, ls=":")
        replicas.annotate(str(after), (t_s, after), fontsize=8, xytext=(2, 2), textcoords="offset points")
    rates.set_ylabel("tuples per second")
    queues.set_ylabel("queued tuples")
    replicas.set_ylabel("replicas")
    replicas.set_xlabel("seconds since the start")
    replicas.yaxis.get_major_locator().set_params(integer=True)
    for panel in (rates, queues, replicas):
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.25)
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    figure.suptitle(name)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def rate_of(samples: Sequence[Sample], what: str) -> tuple[Floats, Floats]:
    """A count of the samples, per second."""
    ends = np.array([sample.t_s for sample in samples])
    return per_second(ends, np.array([getattr(sample, what) for sample in samples]), ends[-1] if len(ends) else 0.0)
