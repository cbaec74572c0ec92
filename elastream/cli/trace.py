"""`elastream trace list` and `elastream trace show WORKLOAD`: what can arrive, and what it looks like with its spikes."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from elastream.cli.console import plain_console
from elastream.workload import (
    Arrivals,
    Spike,
    VolumeSpike,
    load_trace,
    parse_calm,
    parse_spikes,
    provenance,
    to_csv,
    trace_names,
    with_spikes,
)
from elastream.workload.chart import draw_chart, short, span_word, spike_word
from elastream.workload.spec import SYNTAX

MOST_SPIKES = 8
"""How many spikes have a line under the chart."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = SYNTAX
    what = parser.add_subparsers(dest="what", required=True, metavar="list|show")
    listed = what.add_parser("list", help="the traces that ship with the package")
    listed.add_argument("--json", action="store_true", help="print one JSON document")
    show = what.add_parser(
        "show",
        help="draw a workload",
        epilog=SYNTAX,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    show.add_argument("workload", metavar="NAME|FILE|SHAPE", help="what arrives when: see below")
    show.add_argument("--speed", type=float, default=1.0, help="compress its time this many times")
    show.add_argument("--scale", type=float, default=1.0, help="multiply its tuples")
    show.add_argument("--spike", action="append", default=[], metavar="KEY=N,...", help="see below; may be repeated")
    show.add_argument(
        "--seed", type=int, default=0, help="of random spikes and hot keys; the same seed, the same spikes"
    )
    show.add_argument("--png", metavar="FILE", help="also draw a picture")
    show.add_argument("--csv", metavar="FILE", help="also write it as a trace file")
    show.add_argument(
        "--step", type=float, metavar="S", help="the step of that file; default: one that suits its length"
    )
    show.add_argument("--json", action="store_true", help="print one JSON document, nothing else, on standard output")


def main(args: argparse.Namespace) -> int:
    return _list(args) if args.what == "list" else _show(args)


def _list(args: argparse.Namespace) -> int:
    traces = {name: load_trace(name) for name in trace_names()}
    if args.json:
        rows = [
            {"name": name, "step_s": trace.ends_s[1], **_figures(trace), **asdict(provenance(name))}
            for name, trace in traces.items()
        ]
        sys.stdout.write(json.dumps(rows) + "\n")
        return 0
    table = Table()
    table.add_column("trace", no_wrap=True)
    for column in ("length", "step", "events", "mean/s", "peak/s"):
        table.add_column(column, justify="right", no_wrap=True)
    origins = Table.grid(padding=(0, 2))
    for name, trace in traces.items():
        spans = [span_word(trace.seconds), span_word(trace.ends_s[1])]
        table.add_row(name, *spans, *map(short, (trace.total, trace.mean_per_s, trace.peak_per_s)))
        origin = provenance(name)
        origins.add_row(name, Text.assemble(origin.what, "\n", (origin.source, "dim")))
    console = plain_console(soft_wrap=False)
    console.print(table)
    console.print(origins)
    return 0


def _show(args: argparse.Namespace) -> int:
    calm = parse_calm(args.workload, speed=args.speed, scale=args.scale)
    spikes = parse_spikes(args.spike, seconds=calm.seconds, seed=args.seed)
    arrivals = with_spikes(calm, spikes, args.seed)
    if args.csv:
        to_csv(arrivals, args.csv, args.step)
    if args.png:
        # Matplotlib takes its time to load.
        from elastream.workload.picture import draw_picture

        draw_picture(_summary(args.workload, arrivals), calm, arrivals, spikes, args.png)
    if args.json:
        sys.stdout.write(json.dumps(_document(args, arrivals, spikes)) + "\n")
    else:
        _print(args, arrivals, spikes)
    return 0


def _figures(arrivals: Arrivals) -> dict[str, Any]:
    return {
        "seconds": arrivals.seconds,
        "tuples": arrivals.total,
        "mean_per_s": arrivals.mean_per_s,
        "peak_per_s": arrivals.peak_per_s,
        "peak_over_mean": arrivals.peak_per_s / arrivals.mean_per_s if arrivals.mean_per_s else None,
    }


def _document(args: argparse.Namespace, arrivals: Arrivals, spikes: Sequence[Spike]) -> dict[str, Any]:
    return {
        "workload": args.workload,
        "speed": args.speed,
        "scale": args.scale,
        "seed": args.seed,
        **_figures(arrivals),
        "spikes": [
            {
                "kind": "volume" if isinstance(spike, VolumeSpike) else "data",
                "corners_s": spike.corners_s,
                **asdict(spike),
            }
            for spike in spikes
        ],
    }


def _print(args: argparse.Namespace, arrivals: Arrivals, spikes: Sequence[Spike]) -> None:
    console = plain_console(soft_wrap=False)
    chart = draw_chart(arrivals, spikes[:MOST_SPIKES], console.width)
    console.print(Text(_summary(args.workload, arrivals)))
    for line in chart.bars:
        _line(console, line, chart.margin, "cyan")
    for line in chart.axis:
        _line(console, line, chart.margin, "")
    for spike, line in chart.spikes:
        _line(console, line, chart.margin, "red" if isinstance(spike, VolumeSpike) else "magenta")
    for spike in spikes[MOST_SPIKES:]:
        console.print(Text(f"and at {spike.at_s:g} s: {spike_word(spike)}"))
    for option, file in (("picture", args.png), ("trace file", args.csv)):
        if file:
            console.print(Text(f"{option} {file}"), soft_wrap=True)


def _line(console: Console, line: str, margin: int, style: str) -> None:
    text = Text(line, no_wrap=True, overflow="crop")
    text.stylize(style, margin)
    console.print(text)


def _summary(name: str, arrivals: Arrivals) -> str:
    mean, peak = arrivals.mean_per_s, arrivals.peak_per_s
    ratio = f", {short(peak / mean)} x the mean" if mean else ""
    return f"{name}: {arrivals.total:,} tuples in {arrivals.seconds:,.6g} s, mean {short(mean)}/s, peak {short(peak)}/s{ratio}"
