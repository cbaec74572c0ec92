"""What the charts of a page show: samples enter, lines with few points leave. Nothing is drawn here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from elastream.report.latency import LatencyPoint
from elastream.report.pages.words import clock, count, plural, span
from elastream.report.series import Sample, Series
from elastream.report.thinning import MOST_POINTS, Floats, changes, outline, per_second

INKS = 6
"""So many colours are told apart by everybody; the next operators get the same ones in dashes."""


@dataclass(frozen=True)
class Line:
    """One line, and how it looks."""

    name: str
    t_s: Floats
    y: Floats
    ink: str
    """A colour of the style sheet, by name."""
    shape: Literal["line", "area", "step", "dots", "rings"] = "line"
    dash: int = 0
    """0 is solid."""
    right: bool = False
    """Measured on the axis to the right."""
    words: tuple[str, ...] = ()
    """Of each point, where it has some."""


@dataclass(frozen=True)
class Bracket:
    """A stretch of time with a word at it."""

    from_s: float
    to_s: float
    words: str


@dataclass(frozen=True)
class Chart:
    """Lines over the same time."""

    key: str
    title: str
    caption: str
    """What there is to see, in words."""
    unit: Literal["per_s", "tuples", "replicas", "seconds", "inverse", "score"]
    lines: tuple[Line, ...]
    until_s: float
    from_s: float = 0.0
    top: float | None = None
    """What the axis has to reach; None if only what is seen counts."""
    log: bool = False
    """Can be switched to a logarithmic axis."""
    marks: bool = False
    """Shows the decisions of the page."""
    bracket: Bracket | None = None
    small: bool = False


def sources_of(report: Mapping[str, Any], series: Series) -> tuple[str, ...]:
    """As the report says; an old one does not, and there it is where tuples enter and none ever waits."""
    if "sources" in report:
        return tuple(report["sources"])
    return tuple(
        name for name, its in series.operators.items() if any(s.entered for s in its) and not any(s.queued for s in its)
    )


def end_of(report: Mapping[str, Any], series: Series, latencies: Sequence[LatencyPoint]) -> float:
    """When the run was over, in seconds since it began."""
    return max(
        (
            *(samples[-1].t_s for samples in series.operators.values() if samples),
            *(point.t_s for point in latencies[-1:]),
            *(decision["t_s"] for decision in report.get("decisions", ())),
        ),
        default=0.0,
    )


def split_of(series: Series, sources: Iterable[str]) -> float:
    """How many tuples become of one that a source brings in, on the average of the run."""
    made = sum(sample.entered for samples in series.operators.values() for sample in samples)
    came = sum(sample.entered for name in sources for sample in series.operators.get(name, ()))
    return made / came if came else 1.0


def rates(series: Series, sources: Iterable[str], until_s: float, most: int = MOST_POINTS) -> tuple[Line, Line]:
    """Tuples per second that sources brought in, each counted as often as tuples become of it, and that were finished."""
    t, came = _rate([series.operators.get(name, []) for name in sources], "input", until_s)
    done = _rate(list(series.operators.values()), "finished", until_s)
    return (
        Line("input", *outline(t, came * split_of(series, sources), most), ink="input", shape="area"),
        Line("finished", *outline(*done, most), ink="finished"),
    )


def rates_chart(series: Series, sources: Iterable[str], until_s: float) -> Chart:
    lines = rates(series, sources, until_s)
    most = [count(line.y.max(initial=0.0)) for line in lines]
    caption = f"Up to {most[0]} tuples per second came in, and up to {most[1]} per second were finished."
    if abs(split_of(series, sources) - 1) > 0.005:
        caption += f" A tuple that comes in counts as the {split_of(series, sources):.2f} that become of it."
    return Chart("rates", "Input and finished, per second", caption, "per_s", lines, until_s)


def queued_chart(series: Series, served: Sequence[str], until_s: float) -> Chart:
    lines = tuple(
        Line(name, *outline(*column(series.operators.get(name, ()), "queued")), ink=ink(n), dash=n // INKS)
        for n, name in enumerate(served)
    )
    longest = max(lines, key=lambda line: line.y.max(initial=0.0), default=None)
    if longest is None or not longest.y.any():
        caption = "Nothing had to wait."
    else:
        at = int(longest.y.argmax())
        caption = f"The longest queue was {count(longest.y[at])} tuples at {longest.name}, {clock(longest.t_s[at])} into the run."
    return Chart("queued", "Queued tuples", caption, "tuples", lines, until_s, log=True)


def replicas_chart(series: Series, served: Sequence[str], until_s: float, decisions: int) -> Chart:
    lines = tuple(
        Line(name, *changes(*column(series.operators.get(name, ()), "replicas")), ink(n), "step", n // INKS)
        for n, name in enumerate(served)
    )
    caption = "They were never changed."
    if decisions:
        caption = f"{plural(decisions, 'decision')}: ▲ more, ▼ fewer. Point at one, tap it or use the arrow keys for its reason."
    return Chart("replicas", "Replicas", caption, "replicas", lines, until_s, marks=True)


def latency_chart(latencies: Sequence[LatencyPoint], summary_ms: Mapping[str, float], until_s: float) -> Chart:
    t = np.array([point.t_s for point in latencies], dtype=np.float64)
    lines = tuple(
        Line(
            name,
            *outline(t, np.array([getattr(point, f"{name}_s") for point in latencies], dtype=np.float64)),
            ink=name,
            dash=1 if name == "mean" else 0,
        )
        for name in ("mean", "p50", "p95", "p99")
    )
    caption = "No tuple was finished." if not latencies else ""
    if latencies and {"p50", "p99"} <= summary_ms.keys():
        half, most = (span(summary_ms[name] / 1e3) for name in ("p50", "p99"))
        caption = f"From the time a tuple was due until it was finished: half took less than {half}, 99 of 100 less than {most}."
    return Chart("latency", "Latency", caption, "seconds", lines, until_s, log=True)


def ink(position: int) -> str:
    return f"c{position % INKS}"


def as_json(chart: Chart) -> dict[str, Any]:
    """What the script of the page reads. Times keep as many digits as can be seen."""
    digits = 3 if chart.until_s - chart.from_s < 100 else 2 if chart.until_s < 10_000 else 1
    document: dict[str, Any] = {
        "key": chart.key,
        "unit": chart.unit,
        "from": round(chart.from_s, 3),
        "until": round(chart.until_s, 3),
        "top": chart.top,
        "marks": chart.marks,
        "small": chart.small,
        "lines": [
            {
                "name": line.name,
                "ink": line.ink,
                "shape": line.shape,
                "dash": line.dash,
                "right": line.right,
                **_points(line, digits),
                **({"words": list(line.words)} if line.words else {}),
            }
            for line in chart.lines
        ],
    }
    if chart.bracket is not None:
        document["bracket"] = vars(chart.bracket)
    return document


def _points(line: Line, digits: int) -> dict[str, list[float]]:
    fine = np.isfinite(line.t_s) & np.isfinite(line.y)
    values = [int(value) if value.is_integer() else float(f"{value:.4g}") for value in line.y[fine].tolist()]
    return {"x": line.t_s[fine].round(digits).tolist(), "y": values}


def column(samples: Sequence[Sample], what: str) -> tuple[Floats, Floats]:
    """The ends of the ticks, and what was counted in each."""
    values = np.array([(sample.t_s, getattr(sample, what)) for sample in samples], dtype=np.float64).reshape(-1, 2)
    return values[:, 0], values[:, 1]


def _rate(operators: Iterable[Sequence[Sample]], what: str, until_s: float) -> tuple[Floats, Floats]:
    """All of them together: the bins of `per_second` are the same for all."""
    found = [per_second(*column(samples, what), until_s) for samples in operators if samples]
    if not found:
        return np.zeros(0), np.zeros(0)
    return found[0][0], np.sum([y for _, y in found], axis=0)
