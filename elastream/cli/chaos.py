"""`elastream chaos`: kill, freeze, cut and fill what a run stands on, and count what became of its tuples."""

import argparse
import json
import sys
from dataclasses import asdict

from rich.table import Table

from elastream.chaos.command import Outcome, chaos
from elastream.cli.console import plain_console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=3.0, help="for how long; default 3")
    parser.add_argument("--faults", type=int, help="or until so many faults")
    parser.add_argument(
        "--cluster", action="store_true", help="on a standalone cluster made for it; its executors and workers die"
    )
    parser.add_argument("--plain", action="store_true", help="without a source and an operator that Spark serves")
    parser.add_argument(
        "--only", action="append", default=[], metavar="FAULT", help="only faults of this kind; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is random")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def main(args: argparse.Namespace) -> int:
    console = plain_console(stderr=args.json)
    outcome = chaos(
        args.minutes * 60,
        args.faults,
        cluster=args.cluster,
        edges=not args.plain,
        seed=args.seed,
        only=args.only,
        say=console.print,
    )
    if args.json:
        sys.stdout.write(json.dumps({**asdict(outcome), "holds": outcome.holds}) + "\n")
    else:
        console.print(_table(outcome))
        console.print(_words(outcome), style="green" if outcome.holds else "red")
    return 0 if outcome.holds else 1


def _table(outcome: Outcome) -> Table:
    table = Table("fault", "times", "flows again after at most", "problems")
    for name, kind in sorted(outcome.kinds.items()):
        table.add_row(name, str(kind.times), f"{kind.longest_s:.1f} s", str(kind.problems))
    return table


def _words(outcome: Outcome) -> str:
    lines = [
        f"{outcome.faults} faults in {outcome.seconds:.0f} s, {outcome.starts} starts of the driver",
        f"{outcome.expected} tuples: lost {outcome.lost}, doubled {outcome.doubled}, delivered again with other rows {outcome.changed}",
        f"{outcome.poisoned} poisoned tuples, {outcome.buried} in the dead letters",
        f"left behind: {outcome.processes_left} processes, {outcome.files_left} unfinished files",
        *outcome.problems,
    ]
    return "\n".join(lines)
