"""`elastream chaos [APP]`: kill, freeze, cut and fill what a run stands on, and count what became of its tuples."""

import argparse
import json
import signal
import sys
from dataclasses import asdict

from rich.table import Table

from elastream.apps import BUILT_IN
from elastream.chaos.command import Attack, Outcome, chaos
from elastream.cli.app_options import add_app_arguments, app_options
from elastream.cli.console import plain_console

ABOUT_APPS = """\
Without APP a flow of numbers is attacked, and every number is looked for at its sink. The tuples of an application mean nothing
to chaos, so of these it knows less: that the ledger's accounts are right after every fault (elastream audit); for sinks with a
function, which rows they got under which delivery id, so that what is lost, doubled or changed between ledger and sink is counted;
for replays, that every tuple was made once. A tuple that was delivered, and whose sink raised when it came again, counts as doubled.
Outputs and sinks that Spark writes are in the audit only. Sinks are called as in any run: give them a database for tests.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = ABOUT_APPS
    parser.add_argument(
        "app",
        nargs="?",
        help=f"attack this: a built-in ({', '.join(BUILT_IN)}), path/to/app.py:topology or module:topology; "
        "default: a flow of numbers",
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="for how long; default 3")
    parser.add_argument("--faults", type=int, help="or until so many faults")
    parser.add_argument(
        "--cluster", action="store_true", help="on a standalone cluster made for it; its executors and workers die"
    )
    parser.add_argument("--plain", action="store_true", help="without a source and an operator that Spark serves")
    parser.add_argument(
        "--broker",
        action="store_true",
        help="numbers come from a Kafka broker too, made for it, which dies (make kafka)",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="FAULT", help="only faults of this kind; may be repeated"
    )
    parser.add_argument(
        "--trace", metavar="NAME|FILE|SHAPE", help="drive the app's replay sources: see elastream trace"
    )
    add_app_arguments(parser)
    parser.add_argument("--seed", type=int, default=1, help="of what is random")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def main(args: argparse.Namespace) -> int:
    console = plain_console(stderr=args.json)
    attack = Attack(
        args.minutes * 60,
        args.faults,
        app=args.app,
        options=app_options(args),
        trace=args.trace,
        cluster=args.cluster,
        edges=not args.plain,
        broker=args.broker,
        seed=args.seed,
        only=tuple(args.only),
    )
    # Asked to end, it takes along what it has started and mounted.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        outcome = chaos(attack, console.print)
    finally:
        signal.signal(signal.SIGTERM, before)
    if args.json:
        document = asdict(outcome)
        sys.stdout.write(json.dumps({**document, **(document.pop("verdict") or {}), "holds": outcome.holds}) + "\n")
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
    lines = [f"{outcome.faults} faults in {outcome.seconds:.0f} s, {outcome.starts} starts of the driver"]
    if outcome.over:
        lines.append("the sources were exhausted, and everything in them was served")
    if (verdict := outcome.verdict) is not None:
        lines.append(
            f"{verdict.expected} tuples: lost {verdict.lost}, doubled {verdict.doubled}, "
            f"delivered again with other rows {verdict.changed}"
        )
        if verdict.repeated is not None:
            lines.append(f"delivered again with the same rows: {verdict.repeated} deliveries, as may be after a crash")
        if verdict.poisoned is not None:
            lines.append(f"{verdict.poisoned} poisoned tuples, {outcome.buried} in the dead letters")
        else:
            lines.append(f"{outcome.buried} tuples dropped or in the dead letters")
    lines.append(f"left behind: {outcome.processes_left} processes, {outcome.files_left} unfinished files")
    return "\n".join([*lines, *outcome.problems])
