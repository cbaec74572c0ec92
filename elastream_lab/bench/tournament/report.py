"""The files of a tournament: tables in Markdown, CSV and JSON, a page, and a picture of who is cheap and who is in time."""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from elastream.codec import to_plain
from elastream_lab.bench.common.tables import number, table
from elastream_lab.bench.suites.outcomes_plot import COLOURS
from elastream_lab.bench.suites.suite_page import suite_page
from elastream_lab.bench.tournament.play import Contest
from elastream_lab.bench.tournament.score import Entry, Gate, Standing, front, standings

NAME = "tournament"
NEVER_LATE = 1e-4
"""Where those that are always in time stand on a logarithmic axis."""
UNKNOWN = "-"
MARKERS = "osD^vP*X<>hdp"
"""Thirteen, which six colours do not divide: nobody looks like another."""


def _times(value: float) -> str:
    return f"{value:.3f}"


def _share(value: float) -> str:
    # A share that is not all is never shown as all.
    return "100 %" if value == 1 else f"{math.floor(value * 1e4) / 1e2:.2f} %"


def _index(value: float) -> str:
    return f"{value:.2f}"


SHOWN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "trace": ("trace", str),
    "policy": ("policy", str),
    "replica_seconds": ("replica s", number),
    "ratio": ("over clairvoyant", _times),
    "worst_ratio": ("at worst", _times),
    "within": ("in time", _share),
    "least_within": ("in time at worst", _share),
    "mean_ms": ("mean ms", number),
    "p50_ms": ("p50 ms", number),
    "p95_ms": ("p95 ms", number),
    "p99_ms": ("p99 ms", number),
    "index": ("AI-SPS", _index),
    "rescales": ("rescales", str),
    "moments": ("moments", str),
    "lost": ("lost", str),
}


def rows_of(found: Sequence[Entry | Standing], leave: tuple[str, ...] = ()) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of a table."""
    names = [field.name for field in fields(found[0]) if field.name not in leave]
    rows = [[_cell(name, getattr(one, name)) for name in names] for one in found]
    return [SHOWN[name][0] for name in names], rows


def _cell(name: str, value: Any) -> str:
    return UNKNOWN if value is None else SHOWN[name][1](value)


def standing_table(entries: Sequence[Entry]) -> str:
    """The means over all traces; of one trace, nothing is said of the worst."""
    several = len({entry.trace for entry in entries}) > 1
    return table(*rows_of(standings(entries), leave=() if several else ("worst_ratio", "least_within")))


def write_tournament(contest: Contest, entries: Sequence[Entry], gate: Gate | None, folder: Path) -> None:
    """`tournament`.md, .csv, .json, .png and .html."""
    folder.mkdir(parents=True, exist_ok=True)
    best = ", ".join(front(standings(entries)))
    parts = [
        "# Tournament",
        contest.note,
        standing_table(entries),
        f"Beaten by nobody in both, by the means: {best}.",
    ]
    parts += [gate.words] if gate else []
    for trace in dict.fromkeys(entry.trace for entry in entries):
        own = [entry for entry in entries if entry.trace == trace]
        parts += [f"## {trace}", table(*rows_of(own, leave=("trace",)))]
    (folder / f"{NAME}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (folder / f"{NAME}.json").write_text(
        json.dumps(document(contest, entries, gate), indent=2) + "\n", encoding="utf-8"
    )
    (folder / f"{NAME}.csv").write_text(_csv(entries), encoding="utf-8")
    draw_front(entries, contest.latency_s, folder / f"{NAME}.png")
    heads, rows = rows_of(entries)
    labelled = [[f"{row[1]} on {row[0]}", *row[2:]] for row in rows]
    page = suite_page("Tournament", contest.note, ["", *heads[2:]], labelled, [])
    (folder / f"{NAME}.html").write_text(page, encoding="utf-8")


def document(contest: Contest, entries: Sequence[Entry], gate: Gate | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"contest": contest.facts, "standings": standings(entries), "entries": entries}
    gated = {"gate": to_plain(gate) | {"passed": gate.passed}} if gate else {}
    return {**to_plain(shown), **gated}


def draw_front(entries: Sequence[Entry], latency_s: float, path: Path) -> None:
    """The means large, every trace small; the line joins those that nobody beats in both."""
    traces = list(dict.fromkeys(entry.trace for entry in entries))
    columns = min(4, len(traces))
    rows = -(-len(traces) // columns)
    figure = plt.figure(figsize=(4 * max(columns, 3), 6 + 3.2 * rows), constrained_layout=True)
    parts = figure.add_gridspec(2, 1, height_ratios=[6, 3.2 * rows])
    above, below = figure.add_subfigure(parts[0]), figure.add_subfigure(parts[1])
    all_traces = standings(entries)
    styles = {s.policy: (COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)]) for n, s in enumerate(all_traces)}
    panel = above.subplots()
    _points(panel, all_traces, styles, size=110)
    panel.set_title(f"The mean of {len(traces)} traces" if len(traces) > 1 else "One trace")
    panel.set_xlabel("replica seconds over the clairvoyant's")
    panel.set_ylabel(f"tuples later than {latency_s:g} s")
    panel.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=10)
    small = below.subplots(rows, columns, squeeze=False)
    for axes in small.flat[len(traces) :]:
        axes.set_axis_off()
    for axes, trace in zip(small.flat, traces, strict=False):
        _points(axes, [entry for entry in entries if entry.trace == trace], styles, size=40)
        axes.set_title(Path(trace).name, fontsize=9)
        axes.tick_params(labelsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _points(panel: Axes, points: Sequence[Standing | Entry], styles: dict[str, tuple[str, str]], size: float) -> None:
    def late(point: Standing | Entry) -> float:
        return max(NEVER_LATE, 1 - (point.within or 0.0))

    unbeaten = set(front(points))
    line = sorted((point for point in points if point.policy in unbeaten), key=lambda point: point.ratio)
    panel.plot([p.ratio for p in line], [late(p) for p in line], color="grey", lw=1, ls="--", zorder=1)
    for point in points:
        colour, marker = styles[point.policy]
        if point.within is None:
            panel.axvline(point.ratio, color=colour, lw=1, ls=":", label=point.policy, zorder=1)
        else:
            panel.scatter(point.ratio, late(point), s=size, color=colour, marker=marker, label=point.policy, zorder=2)
    panel.set_yscale("log")
    panel.set_ylim(NEVER_LATE / 1.5, 1.5)
    panel.yaxis.set_major_formatter(
        lambda value, _: "never" if value <= NEVER_LATE * 1.001 else f"{value * 100:.{0 if value >= 0.01 else 2}f} %"
    )
    panel.grid(alpha=0.25)


def _csv(entries: Sequence[Entry]) -> str:
    """Plain numbers, so that anything can read them."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Entry)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(entry) for entry in entries)
    return text.getvalue()
