"""The picture of a benchmark: ticks over the floor, throughput beside the plain query, ticks around a rescale."""

from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from elastream.bench.results import EngineBench

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
        (-0.2, [t.p50_ms for t in times], 1.0, "tick p50"),
        (0.2, [t.p95_ms for t in times], 0.45, "tick p95"),
    ):
        bars = panel.bar([x + shift for x in places], values, 0.38, color=OURS, alpha=shade, label=name)
        panel.bar_label(bars, [f"{value:.0f}" for value in values], fontsize=8, padding=2)
    if bench.floor_ms:
        panel.axhline(bench.floor_ms, color=FLOOR, lw=1.5, label=f"Spark's floor p50, {bench.floor_ms:.0f} ms")
        panel.axhline(bench.floor_ms * 1.7, color=FLOOR, lw=1, ls=":", label="goal for p50 at 8 lanes, 1.7 × floor")
    panel.set_xticks(list(places), [str(t.lanes) for t in times])
    panel.set(xlabel="lanes in four operators", ylabel="milliseconds", title="Time between two commits")
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
    for rescale, shade in zip(sorted(bench.rescales, key=lambda r: r.offered_per_s), (1.0, 0.5), strict=False):
        panel.plot(
            [at for at, _ in rescale.ticks_ms],
            [ms for _, ms in rescale.ticks_ms],
            marker="o",
            ms=3,
            lw=1.2,
            color=OURS,
            alpha=shade,
            label=f"ticks at {rescale.offered_per_s:,.0f} tuples/s",
        )
    for restart, style in zip(bench.restarts, ("--", ":"), strict=False):
        work = "nothing to do" if restart.work == "empty" else "2 ms a tuple in each operator"
        first_ms = median(restart.first_ms)
        label = f"first restart of a plain query, {work}: {first_ms:,.0f} ms"
        panel.axhline(first_ms, color=THEIRS, ls=style, label=label)
    panel.axvline(0, color="grey", lw=1)
    panel.annotate(
        "2 replicas → 8, on each of 4 operators",
        (0, 0.03),
        (6, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=9,
        color="grey",
    )
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    low, high = panel.get_ylim()
    # Room for the legend above and for the note below the lines.
    panel.set_ylim(low / 1.5, high * 2)
    panel.set(xlabel="seconds after the rescale", ylabel="milliseconds (log)", title="Ticks around a rescale")
    if bench.rescales or bench.restarts:
        panel.legend(fontsize=8, loc="upper left", ncols=2)
    panel.grid(alpha=0.25)
