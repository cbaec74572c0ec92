"""`elastream bench engine`: the engine measured against Spark itself, on this machine, in one run."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", choices=["engine"], help="what to measure")
    parser.add_argument("--report", metavar="DIR", default="elastream-bench", help="where engine.json, .md and .png go")
    parser.add_argument("--quick", action="store_true", help="every part for a few seconds: does it run, not how fast")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def main(args: argparse.Namespace) -> int:
    from elastream.bench.engine import bench_engine

    console = Console(stderr=args.json, highlight=False, soft_wrap=True)
    result = bench_engine(Path(args.report), args.quick, console.print)
    if args.json:
        sys.stdout.write(json.dumps(result.to_json()) + "\n")
    else:
        console.print(Markdown(result.to_markdown()))
    return 0 if all(goal.met for goal in result.goals()) else 1
