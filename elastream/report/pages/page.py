"""The page of a run: one HTML file with the score, the charts, every decision with its reason, and what was not done."""

from collections.abc import Mapping, Sequence
from typing import Any

from elastream.report.latency import LatencyPoint
from elastream.report.pages.charts import (
    Chart,
    end_of,
    ink,
    latency_chart,
    queued_chart,
    rates_chart,
    replicas_chart,
    sources_of,
)
from elastream.report.pages.fleet_charts import fleet_charts
from elastream.report.pages.lists import decision_list, operator_table, remark_list, state_list
from elastream.report.pages.parts import FOOTER, chart_figure, document, text
from elastream.report.pages.recovery_charts import MOST_PICTURES, recovery_charts
from elastream.report.pages.search import search_chart, search_section
from elastream.report.pages.summary import cards, header, more_numbers
from elastream.report.pages.words import figure, index_words, span
from elastream.report.scores.adaptability import Curve
from elastream.report.scores.containers import FleetSample
from elastream.report.series import Series


def run_page(
    report: dict[str, Any],
    series: Series,
    latencies: Sequence[LatencyPoint],
    curve: Curve | None,
    fleet: Sequence[FleetSample] = (),
) -> str:
    """The report and what it was made of, as a page. An older report says less, and so does its page."""
    sources = sources_of(report, series)
    served = [name for name in series.operators if name not in sources]
    inks = {name: ink(position) for position, name in enumerate(served)}
    until_s = end_of(report, series, latencies)
    decisions, ai_sps = report.get("decisions") or [], report.get("ai_sps") or {}
    charts = [
        rates_chart(series, sources, until_s),
        queued_chart(series, served, until_s),
        replicas_chart(series, served, until_s, len(decisions)),
    ]
    charts += fleet_charts(fleet, until_s)
    if latencies:
        charts.append(latency_chart(latencies, report.get("latency_ms") or {}, until_s))
    recoveries = recovery_charts(ai_sps, curve)
    steps = report.get("searches") or []
    search = search_chart(steps)
    parts = [
        "<main>",
        header(report, until_s, len(served)),
        cards(report),
        *(chart_figure(chart) for chart in charts),
        search_section(steps, search),
        _recovery(ai_sps, report.get("ai_sps_busy"), recoveries),
        operator_table(report, sources, inks),
        decision_list(decisions, inks),
        state_list(report),
        remark_list(report),
        more_numbers(report),
        FOOTER,
        "</main>",
    ]
    drawn = [*charts, *([search] if search else []), *recoveries]
    return document(str(report.get("name", "run")), "\n".join(part for part in parts if part), drawn)


def _recovery(ai_sps: Mapping[str, Any], busy: Mapping[str, Any] | None, pictures: Sequence[Chart]) -> str:
    """The adaptability index, and how it came about."""
    if not ai_sps:
        return ""
    if pictures:
        said = (
            f"{' '.join(index_words(ai_sps, busy))} Kₛ {figure(ai_sps.get('k_s'))}, τ {span(ai_sps.get('tau_s'))}. "
            "After a spike the inverse of the queue falls to a minimum and climbs to a new stable state. Kₛ is how near that "
            "is to the state before, τ how long the climb took."
        )
    else:
        said = f"No picture: {ai_sps.get('reason') or 'there is no curve of this run'}."
    if len(ai_sps.get("spikes") or []) > len(pictures) > 0:
        said += f" The first {MOST_PICTURES} of {len(ai_sps['spikes'])} spikes are shown."
    figures = "".join(chart_figure(picture, level=3) for picture in pictures)
    return (
        f'<section><h2>Recovery from spikes</h2><p class="lead">{text(said)}</p>'
        f"{f'<div class=pictures>{figures}</div>' if figures else ''}</section>"
    )
