"""The report of a run: report.json, series.parquet, latency.parquet, report.png and report.html in one directory."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from elastream.codec import encode, to_plain
from elastream.report.files import write_record
from elastream.report.record import Events, Record
from elastream.report.scores.balance import load_summary
from elastream.report.scores.congestion import congestion_summary
from elastream.report.scores.containers import fleet_summary
from elastream.report.scores.end import end_of_run
from elastream.report.scores.metrics import mean_replicas
from elastream.report.scores.score import rounded, run_curve, score
from elastream.report.series import Sample


def make_report(record: Record, events: Events, r_over: int | None = None) -> dict[str, Any]:
    """The numbers, as a reader of report.json gets them."""
    document: dict[str, Any] = to_plain(
        {
            "name": record.name,
            "policy": record.policy,
            "sources": record.sources,
            "pools": record.pools,
            "events": events,
            "seconds": round(max((s[-1].t_s for s in record.series.operators.values() if s), default=0.0), 3),
            "latency_ms": rounded(record.latencies.summary_ms()),
            "latencies": record.latencies,
            "ticks": {"count": record.tick_ms.total, **_spread(record.tick_ms, (50, 95))},
            "processed_ratio": round(events.finished / events.entered, 6) if events.entered else 0.0,
            **score(record, record.latency_line.points(), r_over),
            "load": rounded(load_summary(record.loads)),
            "fleet": fleet_summary(record.fleet),
            "congestion": rounded(congestion_summary(record.healths)),
            "usage": _usage(record),
            "warnings": record.warnings,
            "verdict": record.verdict,
            "kept": record.kept,
            "base": record.base,
            "failures": record.failures,
            "new_dead_letters": sum(record.dead_letters.values()),
            "rescales": record.rescales.total,
            "rescale_pause_ms": _spread(record.rescale_ticks_ms, (50,)),
            "operators": {
                name: _operator(samples) | {"dead_letters": record.dead_letters.get(name, 0)}
                for name, samples in record.series.operators.items()
            },
            "decisions": record.rescales,
            "state_moves": record.state_moves,
            "crashes": [{"t_s": round(t_s, 3), "what": what} for t_s, what in record.crashes],
            "searches": record.searches,
            "end": end_of_run(record),
            "remarks": [{"t_s": t_s, "kind": kind, "words": words} for t_s, kind, words in record.remarks],
        }
    )
    return document


def write_report(record: Record, events: Events, folder: Path, r_over: int | None = None) -> dict[str, Any]:
    """Write all files; gives what is in report.json. The picture report.png needs the extra `plots`."""
    # Here and not above: workers import this package, too.
    from elastream.report.pages.page import run_page

    folder.mkdir(parents=True, exist_ok=True)
    report = make_report(record, events, r_over)
    (folder / "report.json").write_bytes(encode(report, indent=2) + b"\n")
    write_record(record, folder)
    if find_spec("matplotlib") is not None:
        from elastream.report.pages.plots import draw_run

        changes = [(r.t_s, r.operator, r.after) for r in record.rescales]
        draw_run(record.name, record.series, record.sources, changes, folder / "report.png")
    page = run_page(report, record.series, record.latency_line.points(), run_curve(record), record.fleet)
    (folder / "report.html").write_text(page, encoding="utf-8")
    return report


def _usage(record: Record) -> dict[str, float] | None:
    """CPU and memory of the run; None of a simulated one, which has neither."""
    if record.cpu_s is None or record.memory_bytes is None:
        return None
    seconds = max((its[-1].t_s for its in record.series.operators.values() if its), default=0.0)
    return {
        "cpu_s": round(record.cpu_s, 2),
        "cores": round(record.cpu_s / seconds, 3) if seconds else 0.0,
        "memory_mb": round(record.memory_bytes / 2**20, 1),
    }


def _operator(samples: list[Sample]) -> dict[str, Any]:
    processed = sum(s.processed for s in samples)
    busy_s = sum(s.busy_s for s in samples)
    return {
        "received": sum(s.input for s in samples),
        "processed": processed,
        "dropped": sum(s.dropped for s in samples),
        "late": sum(s.late for s in samples),
        "queued_max": max((s.queued for s in samples), default=0),
        "queued_end": samples[-1].queued if samples else 0,
        "replicas_mean": round(mean_replicas(samples), 3),
        "replicas_max": max((s.replicas for s in samples), default=0),
        "busy_seconds": round(busy_s, 3),
        "service_ms": round(busy_s / processed * 1e3, 4) if processed else 0.0,
    }


def _spread(values: Sequence[float], percents: tuple[int, ...]) -> dict[str, float]:
    names = [f"p{percent}_ms" if len(percents) > 1 else f"p{percent}" for percent in percents]
    largest = "max_ms" if len(percents) > 1 else "max"
    if not values:
        return dict.fromkeys([*names, largest], 0.0)
    found = {**dict(zip(names, np.percentile(list(values), percents).tolist(), strict=True)), largest: max(values)}
    return {name: round(value, 3) for name, value in found.items()}
