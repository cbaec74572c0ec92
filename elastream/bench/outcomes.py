"""How the scenarios of a suite went: one table in Markdown, CSV and JSON, one picture, one page."""

import csv
import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from elastream.bench.tables import number, table
from elastream.errors import SettingError
from elastream.scoring.files import SERIES, read_record
from elastream.scoring.latency import LatencyPoint
from elastream.scoring.record import Record

Report = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One run: its report, and what its plots are drawn from."""

    label: str
    folder: Path
    report: Report
    record: Record
    latencies: Sequence[LatencyPoint]


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    of: Callable[[Report], float | None]
    show: Callable[[float], str] = number
    better: Literal["low", "high"] | None = None


def _four(value: float) -> str:
    return f"{value:.4f}"


def _whole(value: float) -> str:
    return str(int(value))


COLUMNS: Mapping[str, Column] = {
    "saved": Column(lambda r: r["saved_resources"], _four, "high"),
    "degradation": Column(lambda r: r["throughput_degradation"], _four, "low"),
    "processed": Column(lambda r: r["processed_ratio"], _four, "high"),
    "latency ms": Column(lambda r: r["latency_ms"]["mean"], better="low"),
    "p95 ms": Column(lambda r: r["latency_ms"]["p95"], better="low"),
    "AI-SPS": Column(lambda r: r["ai_sps"]["index"], lambda value: f"{value:.3f}", "high"),
    "lost": Column(lambda r: r["events"]["dropped"], _whole, "low"),
    "rescales": Column(lambda r: r["rescales"], _whole),
    "AI-SPS, busy": Column(lambda r: r.get("ai_sps_busy", {}).get("index"), lambda value: f"{value:.3f}", "high"),
    "K_s": Column(lambda r: r["ai_sps"]["k_s"], _four, "high"),
    "τ s": Column(lambda r: r["ai_sps"]["tau_s"], lambda value: f"{value:.2f}", "low"),
    "lb": Column(lambda r: r["load"]["lb_mean"] if r["load"] else None, lambda value: f"{value:.3f}", "low"),
    "replica seconds": Column(lambda r: r["replica_seconds"], better="low"),
    "regret": Column(lambda r: r.get("regret"), lambda value: f"{value:.1%}", "low"),
    "CPU s": Column(lambda r: (r.get("usage") or {}).get("cpu_s"), better="low"),
    "memory MB": Column(lambda r: (r.get("usage") or {}).get("memory_mb"), better="low"),
    "r over": Column(lambda r: r["r_over"], _whole),
    "longest tick with a rescale ms": Column(lambda r: r["rescale_pause_ms"]["max"]),
    "tick p50 ms": Column(lambda r: r["ticks"]["p50_ms"]),
    "longest tick ms": Column(lambda r: r["ticks"]["max_ms"]),
}
"""The metrics of the PSPS paper first, then the adaptability index, then what it all costs."""

BRIEF = 8
"""So many columns fit on a terminal."""


def outcome_table(outcomes: Sequence[Outcome], brief: bool = False) -> str:
    names = [name for name, column in COLUMNS.items() if any(column.of(its.report) is not None for its in outcomes)]
    if brief:
        names = [*names[: BRIEF - 1], "regret"] if "regret" in names else names[:BRIEF]
    return table(["", *names], [[outcome.label, *_cells(outcome.report, names)] for outcome in outcomes])


def paper_table(outcomes: Sequence[Outcome], paper: Mapping[str, Mapping[str, float]]) -> str:
    """Ours beside the paper's, where a paper has the same scenario; empty where none has."""
    rows = []
    for outcome in outcomes:
        theirs = paper.get(outcome.label, {})
        if theirs:
            cells = [(COLUMNS[name], COLUMNS[name].of(outcome.report) or 0.0, theirs[name]) for name in theirs]
            rows.append([outcome.label, *(f"{column.show(ours)} / {column.show(its)}" for column, ours, its in cells)])
    names = next((list(its) for its in paper.values() if its), [])
    return table(["ours / the paper's", *names], rows) if rows else ""


def _cells(report: Report, names: Sequence[str]) -> list[str]:
    values = [(COLUMNS[name], COLUMNS[name].of(report)) for name in names]
    return ["" if value is None else column.show(value) for column, value in values]


def read_outcome(label: str, folder: Path) -> Outcome:
    """From the files that a run left."""
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"{folder}: the report of an earlier run cannot be read: {error}; remove it") from None
    record, latencies = read_record(folder / SERIES)
    return Outcome(label, folder, report, record, latencies)


def with_regret(outcomes: Sequence[Outcome], alike: Sequence[object]) -> list[Outcome]:
    """How many replica seconds more each took than the clairvoyant on the same workload, where there is one.

    `alike` says of each outcome what its workload was.
    """
    best = {
        its: outcome.report["replica_seconds"]
        for outcome, its in zip(outcomes, alike, strict=True)
        if outcome.report["policy"].startswith("oracle")
    }
    return [
        replace(outcome, report=outcome.report | {"regret": outcome.report["replica_seconds"] / best[its] - 1})
        if best.get(its)
        else outcome
        for outcome, its in zip(outcomes, alike, strict=True)
    ]


def write_outcomes(
    name: str,
    title: str,
    note: str,
    outcomes: Sequence[Outcome],
    folder: Path,
    paper: Mapping[str, Mapping[str, float]],
    workloads: Sequence[Hashable],
) -> None:
    """`name`.md, .csv, .json, .png and .html. Those whose `workloads` are the same are drawn together."""
    from elastream.bench.outcomes_plot import draw_outcomes
    from elastream.bench.suite_page import SuiteRun, suite_page

    folder.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(
        part for part in (f"# {title}", note, outcome_table(outcomes), paper_table(outcomes, paper)) if part
    )
    (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    document = {outcome.label: outcome.report for outcome in outcomes}
    (folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    (folder / f"{name}.csv").write_text(_csv(outcomes), encoding="utf-8")
    groups: dict[Hashable, list[Outcome]] = {}
    for outcome, workload in zip(outcomes, workloads, strict=True):
        groups.setdefault(workload, []).append(outcome)
    draw_outcomes(list(groups.values()), folder / f"{name}.png")
    page = suite_page(
        title,
        note,
        ["", *COLUMNS],
        [[outcome.label, *_cells(outcome.report, list(COLUMNS))] for outcome in outcomes],
        [
            SuiteRun(o.label, o.report, o.record.series, o.latencies, link=f"{o.folder.name}/report.html")
            for o in outcomes
        ],
        better={name: column.better for name, column in COLUMNS.items() if column.better},
    )
    (folder / f"{name}.html").write_text(page, encoding="utf-8")


def _csv(outcomes: Sequence[Outcome]) -> str:
    """Plain numbers, so that anything can read them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["scenario", *COLUMNS])
    for outcome in outcomes:
        values = [column.of(outcome.report) for column in COLUMNS.values()]
        writer.writerow([outcome.label, *("" if value is None else value for value in values)])
    return text.getvalue()
