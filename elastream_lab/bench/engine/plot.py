"""The picture of a benchmark: ticks over the floor, throughput beside the plain query, ticks around a rescale."""

from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from elastream_lab.bench.engine.results import EngineBench

OURS, THEIRS, FLOOR = "#2b6cb0", "#b7791f", "#c53030"


def draw_bench(bench: EngineBench, path: Path) -> None:
    """Three panels above, the rescale over the whole width below."""
    figure = plt.figure(figsize=(13, 9), constrained_layout=True)
    grid = figure.add_gridspec(2, 3, width_ratios=[1.5, 1, 1])
    _ticks(figure.add_subplot(grid[0, 0]), bench)
    _bars(figure.add_subplot(grid[0, 1]), bench, "empty", "operators that do nothing")
    _bars(figure.add_subplot(grid[0, 2]), bench, "20us", "20 µs a tuple")
    _rescales(figure.add_subplot(grid[1, :]), bench)
    m = bench.machine
    figure.suptitle(
        f"Elastream's engine beside Spark {m.spark} itself, {m.cores} cores{' (quick run)' if bench.quick else ''}"
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _ticks(panel: Axes, bench: EngineBench) -> None:
    times = sorted(bench.ticks, key=lambda t: t.lanes)
    places = range(len(times))
    for shift, values, shade, name in (
        (-0.2, [t.latency_mean_ms for t in times], 1.0, "mean"),
        (0.2, [t.latency_p95_ms for t in times], 0.45, "p95"),
    ):
        bars = panel.bar([x + shift for x in places], values, 0.38, color=OURS, alpha=shade, label=name)
        panel.bar_label(bars, [f"{value:.0f}" for value in values], fontsize=8, padding=2)
    if bench.floor_ms:
        panel.axhline(bench.floor_ms, color=FLOOR, lw=1.5, label=f"Spark's empty micro-batch, {bench.floor_ms:.0f} ms")
    panel.set_xticks(list(places), [str(t.lanes) for t in times])
    panel.set(xlabel="lanes in four operators", ylabel="milliseconds", title="Latency of four hops, 1,000 tuples/s")
    panel.margins(y=0.3)
    panel.legend(fontsize=8, loc="upper left")


def _bars(panel: Axes, bench: EngineBench, work: str, what: str) -> None:
    found = [("Elastream", bench.best("elastream", work), OURS), ("plain query", bench.best("plain", work), THEIRS)]
    found.append(("plain query,\none function", bench.best("plain", f"{work} in one function"), THEIRS))
    shown = [(name, best.per_second, colour) for name, best, colour in found if best]
    panel.set_title(f"Throughput: {what}", fontsize=10)
    if not shown:
        panel.text(0.5, 0.5, "not measured", ha="center", transform=panel.transAxes, color="grey")
        panel.set_axis_off()
        return
    bars = panel.bar(
        [name for name, _, _ in shown], [rate for _, rate, _ in shown], 0.6, color=[colour for _, _, colour in shown]
    )
    panel.bar_label(bars, [f"{rate:,.0f}" for _, rate, _ in shown], fontsize=8, padding=2)
    panel.set_ylabel("tuples per second")
    panel.tick_params(axis="x", labelsize=8)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.margins(y=0.15)


def _rescales(panel: Axes, bench: EngineBench) -> None:
    for rescale in bench.rescales:
        panel.plot(
            [at for at, _ in rescale.gaps_ms],
            [ms for _, ms in rescale.gaps_ms],
            lw=0.8,
            color=OURS,
            label=f"time without output, {rescale.offered_per_s:,.0f} tuples/s",
        )
        for number, at in enumerate(rescale.at_s):
            panel.axvline(at, color="grey", lw=0.8, ls=":", label=None if number else "a rescale, 2 → 8 or 8 → 2")
    for restart, style in zip(bench.restarts, ("--", ":"), strict=False):
        first_ms = median(restart.first_ms)
        panel.axhline(first_ms, color=THEIRS, ls=style, label=f"restart of a plain query: {first_ms:,.0f} ms")
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    low, high = panel.get_ylim()
    # Room for the legend above the lines.
    panel.set_ylim(low / 1.5, high * 3)
    panel.set(
        xlabel="seconds since the first rescale",
        ylabel="milliseconds (log)",
        title="Output around rescales of four operators",
    )
    if bench.rescales or bench.restarts:
        panel.legend(fontsize=8, loc="upper left", ncols=3)
    panel.grid(alpha=0.25)
