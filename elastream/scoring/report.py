"""The report of a run: report.json, series.parquet, report.png and report.html in one directory."""

import base64
import json
from collections import deque
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from elastream.scoring.latency import Latencies
from elastream.scoring.metrics import mean_replicas, saved_resources, throughput_degradation
from elastream.scoring.series import Series


@dataclass(frozen=True)
class Rescale:
    """A change of an operator's replicas, as it took effect."""

    t_s: float
    operator: str
    before: int
    after: int
    reason: str


@dataclass
class Record:
    """What is written down while a run goes on."""

    name: str
    sources: tuple[str, ...]
    series: Series = field(default_factory=Series)
    latencies: Latencies = field(default_factory=Latencies)
    tick_ms: list[float] = field(default_factory=list)
    rescale_ticks_ms: list[float] = field(default_factory=list)
    """For each change of replicas, the longest of the ticks that committed and applied it."""
    rescales: list[Rescale] = field(default_factory=list)
    pools: dict[str, int] = field(default_factory=dict)
    """The operators whose replicas can be changed, and the most each may have."""
    interval_s: float = 5.0
    """How long the intervals are over which input and output are compared."""
    policy: str = "by hand"
    remarks: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=50))
    """What the control loop said lately: when, of which kind (rescale, veto, error), and the words."""


@dataclass(frozen=True)
class Events:
    """Where every tuple of the run is."""

    entered: int
    finished: int
    dropped: int
    queued: int
    duplicates: int


def make_report(record: Record, events: Events) -> dict[str, Any]:
    """The numbers, as plain JSON."""
    return {
        "name": record.name,
        "events": vars(events),
        "latency_ms": _rounded(record.latencies.summary_ms()),
        "ticks": {"count": len(record.tick_ms), **_spread(record.tick_ms, (50, 95))},
        "policy": record.policy,
        "saved_resources": round(saved_resources(record.series, record.pools), 6),
        "throughput_degradation": round(throughput_degradation(record.series, record.interval_s), 6),
        "processed_ratio": _share(events.finished, events.entered),
        "replica_seconds": round(
            sum(
                s.replicas * s.seconds
                for n, samples in record.series.operators.items()
                for s in samples
                if n not in record.sources
            ),
            3,
        ),
        "rescales": len(record.rescales),
        "rescale_pause_ms": _spread(record.rescale_ticks_ms, (50,)),
        "operators": {name: _operator(samples) for name, samples in record.series.operators.items()},
        "decisions": [vars(rescale) for rescale in record.rescales],
    }


def write_report(record: Record, events: Events, folder: Path) -> dict[str, Any]:
    """Write all four files; gives what is in report.json."""
    # Here and not above: workers import this room too, and have no use for a plotting library.
    from elastream.scoring.plots import draw_run

    folder.mkdir(parents=True, exist_ok=True)
    report = make_report(record, events)
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    record.series.write(folder / "series.parquet")
    draw_run(
        record.name,
        record.series,
        record.sources,
        [(r.t_s, r.operator, r.after) for r in record.rescales],
        folder / "report.png",
    )
    (folder / "report.html").write_text(_page(report, (folder / "report.png").read_bytes()), encoding="utf-8")
    return report


def _operator(samples: list[Any]) -> dict[str, Any]:
    processed = sum(s.processed for s in samples)
    busy_s = sum(s.busy_s for s in samples)
    return {
        "received": sum(s.input for s in samples),
        "processed": processed,
        "dropped": sum(s.dropped for s in samples),
        "queued_max": max((s.queued for s in samples), default=0),
        "queued_end": samples[-1].queued if samples else 0,
        "replicas_mean": round(mean_replicas(samples), 3),
        "replicas_max": max((s.replicas for s in samples), default=0),
        "busy_seconds": round(busy_s, 3),
        "service_ms": round(busy_s / processed * 1e3, 4) if processed else 0.0,
    }


def _spread(values: list[float], percents: tuple[int, ...]) -> dict[str, float]:
    names = [f"p{percent}_ms" if len(percents) > 1 else f"p{percent}" for percent in percents]
    largest = "max_ms" if len(percents) > 1 else "max"
    if not values:
        return dict.fromkeys([*names, largest], 0.0)
    return _rounded({**dict(zip(names, np.percentile(values, percents).tolist(), strict=True)), largest: max(values)})


def _rounded(numbers: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in numbers.items()}


def _share(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole else 0.0


def _page(report: dict[str, Any], picture: bytes) -> str:
    """One file that needs nothing else."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td>" + "".join(f"<td>{value}</td>" for value in numbers.values()) + "</tr>"
        for name, numbers in report["operators"].items()
    )
    head = "".join(f"<th>{name}</th>" for name in next(iter(report["operators"].values()), {}))
    facts = {
        **report["events"],
        **{f"latency {k} ms": v for k, v in report["latency_ms"].items()},
        **{f"tick {k}": v for k, v in report["ticks"].items()},
    }
    cards = "".join(f"<div><b>{value}</b><span>{escape(name)}</span></div>" for name, value in facts.items())
    image = base64.b64encode(picture).decode()
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(report['name'])}</title><style>"
        "body{font-family:system-ui,sans-serif;margin:1.5rem auto;max-width:70rem;padding:0 1rem;color:#1c2733}"
        "img{max-width:100%}table{border-collapse:collapse;font-size:.85rem}td,th{padding:.3rem .6rem;text-align:right;"
        "border-bottom:1px solid #dde}td:first-child,th:first-child{text-align:left}.scroll{overflow-x:auto}"
        ".cards{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}.cards div{background:#f1f5fa;border-radius:.5rem;"
        "padding:.5rem .8rem}.cards b{display:block;font-size:1.1rem}.cards span{font-size:.75rem;color:#567}"
        f"</style></head><body><h1>{escape(report['name'])}</h1><div class='cards'>{cards}</div>"
        f"<img alt='input, queued and replicas over time' src='data:image/png;base64,{image}'>"
        f"<div class='scroll'><table><tr><th>operator</th>{head}</tr>{rows}</table></div></body></html>\n"
    )
