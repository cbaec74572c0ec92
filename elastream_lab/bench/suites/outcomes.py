"""How the scenarios of a suite went: one table in Markdown, CSV and JSON, one picture, one page."""

import csv
import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from elastream.report.files import SERIES, read_record, read_report
from elastream.report.latency import LatencyPoint
from elastream.report.record import Record
from elastream_lab.bench.common.tables import number, table

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
    # Not -0.0000.
    return f"{round(value, 4) + 0.0:.4f}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def _whole(value: float) -> str:
    return str(int(value))


def _machines(report: Report, figure: str) -> float | None:
    """Of the machines of a run, where they are known."""
    found = (report["load"] or {}).get("machines")
    return float(found[figure]) if found else None


def _congestion(report: Report, figure: str) -> float | None:
    """Of the health of a run, where a policy decided."""
    found = report.get("congestion") or {}
    return float(found[figure]) if found else None


def _correlation(report: Report, pair: str, figure: str) -> float | None:
    """Pearson's or Spearman's coefficient, where both of the pair vary."""
    found = ((report.get("correlations") or {}).get(pair) or {}).get(figure)
    return None if found is None else float(found)


def _sizes(report: Report) -> list[int]:
    """The most replicas that each operator had."""
    return [its["replicas_max"] for name, its in report["operators"].items() if name in report["pools"]]


def _executors(report: Report, figure: str) -> float | None:
    """Of the machines of a run, where it has a fleet."""
    found = ((report.get("fleet") or {}).get("levels") or {}).get("executor")
    return float(found[figure]) if found else None


def _search(report: Report, figure: str) -> float | None:
    """Of the last step of a policy that searches."""
    steps = report.get("searches")
    return float(steps[-1][figure]) if steps else None


def _iterations(report: Report) -> float | None:
    """Sizes that a model recommended and that were run, at the last rate of the run."""
    steps = report.get("searches")
    if not steps:
        return None
    return float(sum(its["expected"] is not None for its in steps if its["per_second"] == steps[-1]["per_second"]))


COLUMNS: Mapping[str, Column] = {
    "saved": Column(lambda r: r["saved_resources"], _four, "high"),
    "degradation": Column(lambda r: r["throughput_degradation"], _four, "low"),
    "processed": Column(lambda r: r["processed_ratio"], _four, "high"),
    "latency ms": Column(lambda r: r["latency_ms"]["mean"], better="low"),
    "p95 ms": Column(lambda r: r["latency_ms"]["p95"], better="low"),
    "p99 ms": Column(lambda r: r["latency_ms"]["p99"], better="low"),
    "AI-SPS": Column(lambda r: r["ai_sps"]["index"], lambda value: f"{value:.3f}", "high"),
    "lost": Column(lambda r: r["events"]["dropped"] + r["events"].get("dead_letters", 0), _whole, "low"),
    "rescales": Column(lambda r: r["rescales"], _whole),
    "AI-SPS, busy": Column(lambda r: r.get("ai_sps_busy", {}).get("index"), lambda value: f"{value:.3f}", "high"),
    "K_s": Column(lambda r: r["ai_sps"]["k_s"], _four, "high"),
    "τ s": Column(lambda r: r["ai_sps"]["tau_s"], lambda value: f"{value:.2f}", "low"),
    "queue, latency: r": Column(lambda r: _correlation(r, "queue_latency", "pearson"), _two),
    "queue, latency: ρ": Column(lambda r: _correlation(r, "queue_latency", "spearman"), _two),
    "output, queue: r": Column(lambda r: _correlation(r, "throughput_queue", "pearson"), _two),
    "output, queue: ρ": Column(lambda r: _correlation(r, "throughput_queue", "spearman"), _two),
    "lb": Column(lambda r: r["load"]["lb_mean"] if r["load"] else None, lambda value: f"{value:.3f}", "low"),
    "output/s": Column(lambda r: r["events"]["finished"] / r["seconds"] if r.get("seconds") else None, better="high"),
    "lb of machines": Column(lambda r: _machines(r, "lb_mean"), lambda value: f"{value:.3f}", "low"),
    "load ratio": Column(lambda r: _machines(r, "ratio_mean"), lambda value: f"{value:.3f}"),
    "fullest": Column(lambda r: (r["load"] or {}).get("fullest_mean"), lambda value: f"{value:.3f}", "low"),
    "healthy to/s": Column(lambda r: (r.get("congested") or {}).get("input_per_s"), better="high"),
    "healthy for s": Column(lambda r: (r.get("congested") or {}).get("t_s"), better="high"),
    "crash s": Column(lambda r: r["crashes"][0]["t_s"] if r.get("crashes") else None, better="high"),
    "healthy": Column(lambda r: _congestion(r, "healthy"), lambda value: f"{value:.1%}", "high"),
    "congested": Column(lambda r: _congestion(r, "congested"), _whole, "low"),
    "machine seconds": Column(lambda r: _executors(r, "seconds"), better="low"),
    "machines": Column(lambda r: _executors(r, "most"), _whole, "low"),
    "most replicas": Column(lambda r: max(_sizes(r), default=0), _whole),
    "replicas": Column(lambda r: sum(_sizes(r)), _whole),
    "end latency ms": Column(lambda r: (r.get("end") or {}).get("latency_ms"), better="low"),
    "end output/s": Column(lambda r: (r.get("end") or {}).get("finished_per_s"), better="high"),
    "end replicas": Column(lambda r: sum((r.get("end") or {}).get("replicas", {}).values()) or None, _whole, "low"),
    "base runs": Column(lambda r: _search(r, "base_runs"), _whole, "low"),
    "iterations": Column(lambda r: _iterations(r), _whole, "low"),
    "samples": Column(lambda r: _search(r, "number"), _whole, "low"),
    "score": Column(lambda r: _search(r, "best_score"), _four, "high"),
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


def outcome_table(outcomes: Sequence[Outcome], columns: Sequence[str] = (), brief: bool = False) -> str:
    """Only these columns, or all of which something is known; `brief`: as many as a terminal has room for."""
    names = [name for name in columns or COLUMNS if any(COLUMNS[name].of(its.report) is not None for its in outcomes)]
    if brief and not columns:
        names = [*names[: BRIEF - 1], "regret"] if "regret" in names else names[:BRIEF]
    return table(["", *names], [[outcome.label, *_cells(outcome.report, names)] for outcome in outcomes])


def paper_table(outcomes: Sequence[Outcome], paper: Mapping[str, Mapping[str, float]]) -> str:
    """Ours beside the paper's, where a paper has the same scenario; empty where none has."""
    told = [outcome for outcome in outcomes if paper.get(outcome.label)]
    names = list(dict.fromkeys(name for outcome in told for name in paper[outcome.label]))
    rows = [[its.label, *(_beside(name, its.report, paper[its.label].get(name)) for name in names)] for its in told]
    return table(["ours / the paper's", *names], rows) if rows else ""


def _beside(name: str, report: Report, theirs: float | None) -> str:
    column = COLUMNS[name]
    ours = column.of(report)
    return "" if theirs is None else f"{'-' if ours is None else column.show(ours)} / {column.show(theirs)}"


def _cells(report: Report, names: Sequence[str]) -> list[str]:
    values = [(COLUMNS[name], COLUMNS[name].of(report)) for name in names]
    return ["" if value is None else column.show(value) for column, value in values]


def read_outcome(label: str, folder: Path) -> Outcome:
    """From the files that a run left."""
    report = read_report(folder / "report.json")
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
    columns: Sequence[str] = (),
) -> None:
    """`name`.md, .csv, .json, .png and .html. Those whose `workloads` are the same are drawn together.

    `columns` are those of the tables to read; the files for machines have all.
    """
    from elastream_lab.bench.suites.outcomes_plot import draw_outcomes
    from elastream_lab.bench.suites.paper_order import order_line
    from elastream_lab.bench.suites.suite_page import SuiteRun, suite_page

    folder.mkdir(parents=True, exist_ok=True)
    parts = (f"# {title}", note, outcome_table(outcomes, columns), paper_table(outcomes, paper))
    text = "\n\n".join(part for part in (*parts, order_line(outcomes, paper)) if part)
    (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    document = {outcome.label: outcome.report for outcome in outcomes}
    (folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    (folder / f"{name}.csv").write_text(_csv(outcomes), encoding="utf-8")
    groups: dict[Hashable, list[Outcome]] = {}
    for outcome, workload in zip(outcomes, workloads, strict=True):
        groups.setdefault(workload, []).append(outcome)
    draw_outcomes(list(groups.values()), folder / f"{name}.png")
    shown = list(columns or COLUMNS)
    page = suite_page(
        title,
        note,
        ["", *shown],
        [[outcome.label, *_cells(outcome.report, shown)] for outcome in outcomes],
        [
            SuiteRun(o.label, o.report, o.record.series, o.latencies, link=f"{o.folder.name}/report.html")
            for o in outcomes
        ],
        better={name: column.better for name, column in COLUMNS.items() if column.better and name in shown},
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
