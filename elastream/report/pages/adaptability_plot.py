"""The picture of the adaptability index (figure 7 of its paper): one panel a spike."""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from elastream.report.scores.adaptability import Adaptability, Curve, Recovery

MOST_PANELS = 12
BEFORE_S, AFTER_S = 5.0, 10.0


def draw_adaptability(name: str, curve: Curve, found: Adaptability, path: Path) -> None:
    """Input dashed, the inverse queue, the climb from the minimum to the stable state, and that state."""
    shown = found.recoveries[:MOST_PANELS]
    across = 1 if len(shown) <= 1 else 2
    down = max(1, math.ceil(len(shown) / across))
    figure, grid = plt.subplots(
        down, across, figsize=(6.5 * across, 3.6 * down), squeeze=False, constrained_layout=True
    )
    panels = list(grid.flat)
    for panel, recovery in zip(panels, shown, strict=False):
        _draw(panel, curve, recovery)
    if not shown:
        _lines(panels[0], curve, float(curve.t_s[0]), float(curve.t_s[-1]))
        panels[0].set_title(found.reason, fontsize=9)
    for panel in panels[max(1, len(shown)) :]:
        panel.axis("off")
    said = "no index" if found.index is None else f"AI-SPS {found.index:.2f} of at most {found.ceiling:g}"
    left_out = f", {len(found.recoveries) - len(shown)} more spikes" if len(found.recoveries) > len(shown) else ""
    figure.suptitle(f"{name}: {said}{left_out}")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw(panel: Axes, curve: Curve, recovery: Recovery) -> None:
    start = recovery.onset_s - BEFORE_S
    stop = max(recovery.stable_s, recovery.end_s) + AFTER_S
    _lines(panel, curve, start, stop)
    climb = [recovery.minimum_s, recovery.stable_s], [recovery.minimum_level, recovery.stable_level]
    panel.plot(*climb, color="#1f4e9c", lw=2, marker="o", ms=4, label="transient")
    panel.plot([recovery.stable_s, stop], [recovery.stable_level] * 2, color="#d9730d", lw=2, label="stable state")
    panel.axhline(recovery.first_level, color="#888888", lw=0.8, ls=":")
    much = "" if recovery.settled else " or more"
    index = f"not judged: {recovery.not_judged}" if recovery.index is None else f"index {recovery.index:.2f}"
    panel.set_title(f"$K_s$ {recovery.k_s:.3f}, $\\tau$ {recovery.tau_s:.1f} s{much}, {index}", fontsize=10)
    panel.legend(loc="lower right", fontsize=7)


def _lines(panel: Axes, curve: Curve, start: float, stop: float) -> None:
    seen = (curve.t_s >= start) & (curve.t_s <= stop)
    panel.plot(curve.t_s[seen], curve.inverse_queue[seen], color="#2e8b57", lw=1.3, label="1 / queued")
    panel.set_ylabel("1 / queued")
    panel.set_xlabel("seconds")
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.25)
    rates = panel.twinx()
    rates.plot(curve.t_s[seen], curve.input_per_s[seen], color="#c0392b", lw=1, ls="--")
    rates.set_ylabel("input per second (dashed)")
    rates.set_ylim(bottom=0)
