"""A workload as a picture: the rate over time, the normal rate under its spikes, and what goes to hot keys."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals
from elastream.workload.chart import spike_word
from elastream.workload.data_spikes import DataSpike
from elastream.workload.spikes import Spike, VolumeSpike

RATE, NORMAL, VOLUME, HOT = "#2b6cb0", "#1a202c", "#c53030", "#6b46c1"


def draw_picture(title: str, calm: Arrivals, arrivals: Arrivals, spikes: Sequence[Spike], path: str | Path) -> None:
    """`calm` is the workload before its spikes. With data spikes there is a second panel for the hot keys."""
    heated = [spike for spike in spikes if isinstance(spike, DataSpike)]
    raised = [spike for spike in spikes if isinstance(spike, VolumeSpike)]
    figure, panels = plt.subplots(
        1 + bool(heated),
        1,
        figsize=(11, 6.2 if heated else 4.6),
        sharex=True,
        squeeze=False,
        height_ratios=[3, 1][: 1 + bool(heated)],
        constrained_layout=True,
    )
    rate = panels[0][0]
    rate.stairs(arrivals.rates(), arrivals.ends_s, fill=True, color=RATE, alpha=0.35, lw=0)
    rate.stairs(arrivals.rates(), arrivals.ends_s, color=RATE, lw=1.0, baseline=None, label="tuples due")
    if raised:
        rate.stairs(calm.rates(), calm.ends_s, color=NORMAL, lw=0.9, ls="--", baseline=None, label="normal rate")
    rate.axhline(arrivals.mean_per_s, color="#718096", lw=0.9, ls=":", label=f"mean {arrivals.mean_per_s:,.4g}/s")
    for number, spike in enumerate(raised):
        onset, _, _, over = spike.corners_s
        rate.axvspan(onset, over, color=VOLUME, alpha=0.09, lw=0, label="volume spike" if number == 0 else None)
        rate.annotate(
            spike_word(spike), ((onset + min(over, arrivals.seconds)) / 2, 1.0), xycoords=("data", "axes fraction"),
            xytext=(0, -4), textcoords="offset points", ha="center", va="top", fontsize=8, color=VOLUME,
        )  # fmt: skip
    rate.set_ylabel("tuples per second")
    rate.set_ylim(0, arrivals.peak_per_s * 1.12 or 1.0)
    if heated:
        _draw_heat(panels[1][0], heated, arrivals.seconds)
    for (panel,) in panels:
        panel.grid(alpha=0.25)
        panel.set_xlim(0, arrivals.seconds)
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False)
    panels[-1][0].set_xlabel("seconds since the start")
    figure.suptitle(title, fontsize=12)
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise SettingError(f"picture {path}: cannot be written: {error}") from None
    finally:
        plt.close(figure)


def _draw_heat(panel: Any, spikes: Sequence[DataSpike], seconds: float) -> None:
    for number, spike in enumerate(spikes):
        onset, peak, falls, over = spike.corners_s
        panel.fill_between(
            [onset, peak, falls, over],
            np.asarray([0, 1, 1, 0]) * spike.share,
            color=HOT,
            alpha=0.35,
            lw=0,
            label="to hot keys" if number == 0 else None,
        )
        middle = (peak + min(falls, seconds)) / 2
        keys = f"{spike.hot_keys} key{'s' if spike.hot_keys > 1 else ''}"
        panel.text(middle, spike.share + 0.03, keys, ha="center", va="bottom", fontsize=8, color=HOT)
    panel.set_ylabel("share of tuples")
    panel.set_ylim(0, 1.15)
