"""`elastream score FILE`: the papers' metrics and the adaptability index, of a run or of any other system."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream.report.files import SERIES, read_record, read_report
from elastream.report.pages.words import index_words
from elastream.report.scores.adaptability import Curve, adaptability
from elastream.report.scores.curve_file import read_curves
from elastream.report.scores.score import Span, both_indices, rounded, run_curve, score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a report's directory, its series.parquet, or a CSV with t_s,input,queued[,waiting]",
    )
    parser.add_argument(
        "--r-over", type=int, metavar="N", help="replicas of a run sized for the peak; default: reckoned"
    )
    parser.add_argument("--png", metavar="FILE", help="draw every spike: input, inverse queue, transient, stable state")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def main(args: argparse.Namespace) -> int:
    path = Path(args.file)
    path = path / SERIES if path.is_dir() else path
    if not path.is_file():
        raise SettingError(f"{args.file}: no such file; name a report's directory, a series.parquet or a CSV")
    if args.r_over is not None and args.r_over < 1:
        raise SettingError(f"--r-over must be 1 or more, got {args.r_over}")
    document, curve, injected = _of_csv(path) if path.suffix.lower() == ".csv" else _of_run(path, args.r_over)
    if args.png and curve is not None:
        from elastream.report.pages.adaptability_plot import draw_adaptability

        draw_adaptability(document["name"], curve, adaptability(curve, injected), Path(args.png))
    if args.json:
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        _print(document, plain_console(soft_wrap=False))
    return 0


Scored = tuple[dict[str, Any], Curve | None, tuple[Span, ...]]
"""The numbers, the curve of what is queued, and the spikes that were put onto the input."""


def _of_csv(path: Path) -> Scored:
    queued, waiting = read_curves(path)
    return {"name": path.name, **rounded(both_indices(queued, waiting))}, queued, ()


def _of_run(path: Path, r_over: int | None) -> Scored:
    """What only the run itself knew (events, latencies, decisions) is in the report beside the series."""
    record, latencies = read_record(path)
    document = {"name": record.name, "policy": record.policy}
    beside = path.parent / "report.json"
    if beside.is_file():
        kept = read_report(beside)
        names = ("events", "latency_ms", "processed_ratio", "rescales", "rescale_pause_ms", "load")
        document |= {name: kept[name] for name in names if name in kept}
    return {**document, **score(record, latencies, r_over)}, run_curve(record), record.spikes


def _print(document: dict[str, Any], console: Console) -> None:
    table = Table(title=f"{document['name']}" + (f" ({document['policy']})" if "policy" in document else ""))
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in _rows(document):
        table.add_row(name, value)
    console.print(table)
    ai_sps = document["ai_sps"]
    for line in index_words(ai_sps, document["ai_sps_busy"]):
        console.print(line)
    if not ai_sps["spikes"]:
        return
    spikes = Table(title="spikes")
    for column in ("spike", "from s", "to s", "minimum s", "stable s", "K_s", "τ s", "index"):
        spikes.add_column(column, justify="right")
    for number, spike in enumerate(ai_sps["spikes"], 1):
        times = [f"{spike[name]:.1f}" for name in ("onset_s", "end_s", "minimum_s")]
        index = spike["not_judged"] or f"{spike['index']:.3f}"
        stable = f"{spike['stable_s']:.1f}" if spike["settled"] else "never"
        tau = f"{spike['tau_s']:.1f}" if spike["settled"] else f"> {spike['tau_s']:.1f}"
        spikes.add_row(str(number), *times, stable, f"{spike['k_s']:.4f}", tau, index)
    console.print(spikes)


def _load_rows(of: str, load: dict[str, Any]) -> list[tuple[str, str]]:
    """Of replicas; and of hosts and machines, which are figures of their own."""
    rows = []
    for name, value in load.items():
        words = f"{of} {name.replace('_', ' ')}"
        rows += _load_rows(f"{of} of {name}", value) if isinstance(value, dict) else [(words, f"{value:.3f}")]
    return rows


def _rows(document: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    plain = {
        "saved_resources": "saved resources",
        "r_over": "replicas for the peak",
        "throughput_degradation": "throughput degradation",
        "processed_ratio": "processed",
        "replica_seconds": "replica seconds",
        "rescales": "rescales",
    }
    rows += [(words, f"{document[name]:g}") for name, words in plain.items() if name in document]
    if "latency_ms" in document:
        rows += [(f"latency {name} ms", f"{value:.0f}") for name, value in document["latency_ms"].items()]
    rows += _load_rows("load", document.get("load") or {})
    rows += [(f"lowest health of {name}", f"{value:.3f}") for name, value in document.get("health", {}).items()]
    for name, pair in (document.get("correlations") or {}).items():
        rows += [
            (f"{name.replace('_', '-')} {kind}", "-" if value is None else f"{value:.3f}")
            for kind, value in pair.items()
        ]
    k_s, tau_s = document["ai_sps"]["k_s"], document["ai_sps"]["tau_s"]
    if k_s is not None:
        rows += [("K_s", f"{k_s:.4f}"), ("τ s", f"{tau_s:.2f}"), ("AI-SPS", f"{document['ai_sps']['index']:.3f}")]
    return rows
