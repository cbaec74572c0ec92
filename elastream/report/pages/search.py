"""The search of a policy on a run's page: scores, expected and measured, over the sizes that were tried, in a chart and a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elastream.report.pages.charts import Chart, Line
from elastream.report.pages.parts import chart_figure, html_table, text
from elastream.report.pages.words import NONE, clock, count, figure

Step = Mapping[str, Any]

MOST_ROWS = 200
_MARGIN = 0.03


def search_chart(steps: Sequence[Step]) -> Chart | None:
    """A point per configuration that was measured; None of a run in which nobody searched."""
    if not steps:
        return None
    t = np.array([step["t_s"] for step in steps], dtype=np.float64)
    margin_s = max(1.0, _MARGIN * (t[-1] - t[0]))
    from_s, until_s = max(0.0, t[0] - margin_s), t[-1] + margin_s
    known = [step for step in steps if step["expected"] is not None]
    lines = [
        Line(
            "expected",
            np.array([step["t_s"] for step in known], dtype=np.float64),
            np.array([step["expected"] for step in known], dtype=np.float64),
            ink="expected",
            shape="rings",
            words=tuple(sizes_words(step["sizes"]) for step in known),
        ),
        Line(
            "measured",
            t,
            np.array([step["score"] for step in steps], dtype=np.float64),
            ink="measured",
            shape="dots",
            words=tuple(f"{sizes_words(step['sizes'])} {latency_words(step['measured_ms'])}" for step in steps),
        ),
        Line(
            "best so far",
            t,
            np.array([step["best_score"] for step in steps], dtype=np.float64),
            ink="best",
            shape="step",
            words=tuple(sizes_words(step["best"]) for step in steps),
        ),
        Line(
            "enough",
            np.array([from_s, until_s]),
            np.array([steps[0]["enough"], steps[-1]["enough"]], dtype=np.float64),
            ink="mean",
            dash=2,
        ),
    ]
    caption = (
        f"{len(steps)} configurations of {', '.join(steps[0]['operators'])} were measured. A score of 1 keeps the latency "
        "with the fewest replicas that serve the input."
    )
    return Chart("search", "The search", caption, "score", tuple(lines), float(until_s), float(from_s), top=1.0)


def search_section(steps: Sequence[Step], chart: Chart | None) -> str:
    """The chart, and all configurations in the order in which they were tried."""
    if chart is None:
        return ""
    rows = [
        [
            clock(step["t_s"]),
            count(step["per_second"]),
            text(sizes_words(step["sizes"])),
            _expected(step),
            figure(step["score"], 3),
            latency_words(step["measured_ms"]),
            text(sizes_words(step["best"])),
            text(f"{sizes_words(step['next'])}: {step['why']}"),
        ]
        for step in steps[-MOST_ROWS:]
    ]
    head = ("when", "input per s", "tried", "score expected", "measured", "latency", "best so far", "next, and why")
    return f"{chart_figure(chart)}<section><h2>Configurations tried</h2>{html_table(head, rows, 'search', 'words')}</section>"


def sizes_words(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"


def latency_words(measured_ms: float | None) -> str:
    return "only grows" if measured_ms is None else f"{measured_ms:.0f} ms"


def _expected(step: Step) -> str:
    return NONE if step["expected"] is None else f"{step['expected']:.3f} ± {step['deviation'] or 0.0:.3f}"
