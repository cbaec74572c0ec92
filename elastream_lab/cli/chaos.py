"""`elastream chaos [APP]`: kill, freeze, cut and fill what a run stands on, and count what became of its tuples.

With `--simulated` all of it happens in virtual time, decided by seeds.
"""

import argparse
import json
import os
import signal
import sys
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from elastream.applications.load import application_names
from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream_lab.chaos.command import Attack, Outcome, chaos

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
        help=f"attack this: path/to/app.py:topology, module:topology, or one of {', '.join(application_names())}; "
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
    parser.add_argument("--seed", type=int, help="of what is random; with --simulated, the seed to replay; default 1")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    simulated = parser.add_argument_group("simulation")
    simulated.add_argument(
        "--simulated", action="store_true", help="in virtual time, without Spark: a seed is a history"
    )
    simulated.add_argument("--seeds", type=int, default=100, help="how many; default 100")
    simulated.add_argument("--first", type=int, default=0, help="the first of them; default 0")
    simulated.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default: one per core")
    simulated.add_argument("--shrink", action="store_true", help="with --seed: leave out what is not needed to fail")
    simulated.add_argument(
        "--only-with",
        default="",
        metavar="PARTS",
        help="with --seed: only these faults and tuples, as --shrink prints them",
    )


def main(args: argparse.Namespace) -> int:
    console = plain_console(stderr=args.json)
    if args.simulated:
        return _simulate(args, console)
    attack = Attack(
        args.minutes * 60,
        args.faults,
        app=args.app,
        options=app_options(args.app, args.app_words) if args.app else {},
        trace=args.trace,
        cluster=args.cluster,
        edges=not args.plain,
        broker=args.broker,
        seed=1 if args.seed is None else args.seed,
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


def _simulate(args: argparse.Namespace, console: Console) -> int:
    # Elsewhere it is not needed, and it takes a moment to import.
    from elastream.testing.simulation.command import replay, run_seeds, show
    from elastream.testing.simulation.shrink import read_reduction

    if args.app is not None:
        raise SettingError(f"chaos: --simulated draws its own graphs, got {args.app!r}; leave the application out")
    if args.seed is not None:
        outcome = replay(args.seed, read_reduction(args.only_with), shrink=args.shrink, say=console.print)
        if args.json:
            document = {
                "seed": args.seed,
                "violation": outcome.violation,
                "digest": outcome.digest,
                "works": outcome.works,
            }
            sys.stdout.write(json.dumps(document) + "\n")
        else:
            console.print("\n".join(show(outcome)))
        return 0 if outcome.violation is None else 1
    if args.shrink or args.only_with:
        raise SettingError("chaos: --shrink and --only-with are for one seed; add --seed N")
    tally = run_seeds(args.first, args.seeds, args.jobs, console.print)
    if args.json:
        sys.stdout.write(json.dumps(asdict(tally)) + "\n")
    else:
        console.print(str(tally), style="red" if tally.violations else "green")
    return 1 if tally.violations else 0


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
