"""The page of a suite: its table, and its runs side by side, all on the same axes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import quote

from elastream.report.latency import LatencyPoint
from elastream.report.pages.charts import Chart, Line, column, end_of, rates, sources_of
from elastream.report.pages.parts import FOOTER, chart_figure, document, html_table, log_switch, text
from elastream.report.pages.words import verdict
from elastream.report.series import Series
from elastream.report.thinning import changes, outline, together

Better = Literal["low", "high"]

_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_POINTS = 500
_LEGEND = (
    '<div class="common"><span><i class="ink-input"></i>input</span><span><i class="ink-finished"></i>finished, queued, '
    f"replicas</span><span>queued {log_switch('queued tuples', charts='queued')}</span></div>"
)

KEPT_UP = 0.99
"""A run that has finished a smaller share of its tuples than this, of the share of the run with most, is not judged."""


@dataclass(frozen=True)
class SuiteRun:
    """One run of the suite."""

    label: str
    report: Mapping[str, Any]
    series: Series
    latencies: Sequence[LatencyPoint] = ()
    link: str = ""
    """Where its own page is, relative to this one."""


def suite_page(
    title: str,
    note: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    runs: Sequence[SuiteRun],
    better: Mapping[str, Better] = MappingProxyType({}),
) -> str:
    """`columns` and `rows` are the table as text, labels first. Of the columns in `better` the best values are marked."""
    links = {run.label: run.link for run in runs if run.link}
    behind = _behind(runs)
    judged = [row for row in rows if row[0] not in behind]
    best = {n: best_of([row[n] for row in judged], better[name]) for n, name in enumerate(columns) if name in better}
    cells = [
        [
            _linked(row[0], links),
            *(_cell(words, row[0] not in behind and words in best.get(n, ())) for n, words in enumerate(row[1:], 1)),
        ]
        for row in rows
    ]
    charts = _on_one_scale([_charts(number, run) for number, run in enumerate(runs)])
    parts = [
        "<main>",
        f"<header><h1>{text(title)}</h1>{f'<p class=verdict>{text(note)}</p>' if note else ''}</header>",
        f"<section><h2>Results</h2>{html_table(columns, cells, 'results')}</section>",
        _LEGEND if runs else "",
        '<div class="runs">',
        *(_run(run, its, links) for run, its in zip(runs, charts, strict=True)),
        "</div>",
        FOOTER,
        "</main>",
    ]
    return document(title, "\n".join(part for part in parts if part), [chart for its in charts for chart in its])


def _behind(runs: Sequence[SuiteRun]) -> set[str]:
    """Runs that have finished less than others: whatever they saved, they are not the best at it."""
    ratios = {run.label: float(run.report.get("processed_ratio", 1.0)) for run in runs}
    most = max(ratios.values(), default=0.0)
    return {label for label, ratio in ratios.items() if ratio < KEPT_UP * most}


def best_of(values: Sequence[str], better: Better) -> set[str]:
    """Which of these are the lowest or the highest number. None if all are the same: then none is better."""
    numbers = {words: float(found[0]) for words in values if (found := _NUMBER.match(words.replace(",", "")))}
    if len(set(numbers.values())) < 2:
        return set()
    best = (min if better == "low" else max)(numbers.values())
    return {words for words, number in numbers.items() if number == best}


def _charts(number: int, run: SuiteRun) -> tuple[Chart, ...]:
    sources, until_s = sources_of(run.report, run.series), end_of(run.report, run.series, run.latencies)
    pools = run.report.get("pools") or [name for name in run.series.operators if name not in sources]
    per_tick = [samples for name, samples in run.series.operators.items() if name in pools]
    queued = outline(*together([column(samples, "queued") for samples in per_tick]), _POINTS)
    replicas = changes(*together([column(samples, "replicas") for samples in per_tick]), _POINTS)
    return (
        Chart(
            f"rates-{number}",
            "tuples per second",
            "",
            "per_s",
            rates(run.series, sources, until_s, _POINTS),
            until_s,
            small=True,
        ),
        Chart(
            f"queued-{number}",
            "queued tuples",
            "",
            "tuples",
            (Line("queued", *queued, ink="all"),),
            until_s,
            small=True,
        ),
        Chart(
            f"replicas-{number}",
            "replicas, all operators",
            "",
            "replicas",
            (Line("replicas", *replicas, ink="all", shape="step"),),
            until_s,
            small=True,
        ),
    )


def _on_one_scale(charts: Sequence[tuple[Chart, ...]]) -> list[tuple[Chart, ...]]:
    """The axes of every run reach as far as the longest and the highest of them."""
    until_s = max((chart.until_s for its in charts for chart in its), default=0.0)
    tops = [
        max(float(line.y.max(initial=0.0)) for chart in same for line in chart.lines)
        for same in zip(*charts, strict=True)
    ]
    return [
        tuple(replace(chart, until_s=until_s, top=top) for chart, top in zip(its, tops, strict=True)) for its in charts
    ]


def _run(run: SuiteRun, charts: Sequence[Chart], links: Mapping[str, str]) -> str:
    figures = "".join(chart_figure(chart, level=3, controls=False) for chart in charts)
    return f'<section><h2>{_linked(run.label, links)}</h2><p class="lead">{text(verdict(run.report))}</p>{figures}</section>'


def _linked(label: str, links: Mapping[str, str]) -> str:
    """A colon is quoted too: a link can only lead to a file near by."""
    return f'<a href="{text(quote(links[label], safe="/?#%"))}">{text(label)}</a>' if label in links else text(label)


def _cell(words: str, best: bool) -> str:
    return f'<b class="best">{text(words)}</b>' if best else text(words)
