"""The picture of the platform benchmark: tuples per second over containers of each level, measured and simulated."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from elastream_lab.bench.platform.command import LEVELS, PlatformBench
from elastream_lab.bench.platform.filter import FILTERS

COLOURS = {"threads": "#2b6cb0", "processes": "#b7791f", "machines": "#2f855a"}


def draw_platform(bench: PlatformBench, path: Path) -> None:
    """A panel per filter."""
    figure, panels = plt.subplots(1, len(FILTERS), figsize=(11, 4.5), constrained_layout=True)
    for panel, kind in zip(panels, FILTERS, strict=True):
        _panel(panel, bench, kind)
    figure.suptitle(
        f"Threads of one process, processes of one machine, machines: {bench.master}, {bench.cores} cores"
        f"{' (quick run)' if bench.quick else ''}"
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(panel: Axes, bench: PlatformBench, kind: str) -> None:
    for level in LEVELS:
        rows = bench.level(kind, level)
        if not rows:
            continue
        counts = [count for count, _, _ in rows]
        panel.plot(counts, [row.per_second for _, row, _ in rows], "o-", color=COLOURS[level], label=level)
        panel.plot(counts, [rate for _, _, rate in rows], "x:", color=COLOURS[level], label=f"{level}, simulated")
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if kind == "waits":
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        panel.yaxis.set_minor_locator(NullLocator())
    else:
        panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.set(xlabel="how many", ylabel="tuples per second", title=f"A filter that {kind}")
    panel.grid(alpha=0.25)
    panel.legend(fontsize=8)
