"""`elastream tournament`: policies on traces or on recorded runs, on the simulator, in one table and one picture."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markdown import Markdown

from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream.policies import policy_names
from elastream.workload import trace_names
from elastream_lab.cli.simulator_options import add_simulator_arguments, simulator

if TYPE_CHECKING:
    from elastream_lab.bench.tournament.play import TraceContest
    from elastream_lab.bench.tournament.runs import RunContest

NOT_ASKED_FOR = ("static", "oracle")
"""One has as many forms as there are sizes; the other plays always."""
WIDE = 150
"""Columns of characters of the table."""
OF_TRACES = ("trace", "pool", "service_ms", "seconds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "policies",
        nargs="*",
        metavar="POLICY",
        help="for example psps elastic mine.py:Mine; default: all that have a name",
    )
    parser.add_argument(
        "--run",
        action="append",
        metavar="BASE_DIR",
        help="again for each: instead of traces, a run that had a policy, from its journal, beside the run as it was",
    )
    parser.add_argument(
        "--latency", type=float, default=1.0, metavar="S", help="in time is what is finished within this"
    )
    parser.add_argument(
        "--td",
        type=float,
        metavar="S",
        help="policies decide this often; default: at their own pace, else every second, or as the run's",
    )
    traces = parser.add_argument_group("traces; a run has its own of all of these")
    traces.add_argument(
        "--trace",
        action="append",
        metavar="NAME|FILE|SHAPE[@SPEED]",
        help="again for each; compressed into the time, or cut when there is a speed; default: those that ship",
    )
    traces.add_argument("--pool", type=int, metavar="N", help="the most replicas of every operator (32)")
    traces.add_argument("--service-ms", type=float, metavar="MS", help="what a tuple takes in every operator (20)")
    traces.add_argument("--seconds", type=float, metavar="S", help="of virtual time, each run (600)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random; the same seed, the same run")
    parser.add_argument(
        "--gate", metavar="POLICY", help="exit 1 if it takes over 5 %% more than elastic, or over 5 %% more are late"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time; default: one per core")
    parser.add_argument("--report", metavar="DIR", default="elastream-tournament", help="where the files go")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_simulator_arguments(parser)


def main(args: argparse.Namespace) -> int:
    from elastream_lab.bench.tournament.play import play
    from elastream_lab.bench.tournament.report import document, standing_table, write_tournament
    from elastream_lab.bench.tournament.runs import RunContest, as_they_ran
    from elastream_lab.bench.tournament.score import judge

    console = plain_console(stderr=args.json)
    contest = _contest(args)
    folder = Path(args.report) / f"simulated-{args.system}"
    entries = play(contest, simulator(args), console.print, jobs=args.jobs)
    gate = judge(entries, args.gate) if args.gate else None
    if isinstance(contest, RunContest):
        entries += as_they_ran(contest, entries)
    write_tournament(contest, entries, gate, folder)
    if args.json:
        sys.stdout.write(json.dumps(document(contest, entries, gate)) + "\n")
    else:
        # A figure that is cut off is worth nothing: rather have a terminal wrap the line.
        console.width = max(console.width, WIDE)
        console.print(Markdown(standing_table(entries)))
        if gate:
            console.print(gate.words)
        console.print(f"report {folder}/tournament.html")
    return 1 if gate and not gate.passed else 0


def _contest(args: argparse.Namespace) -> "RunContest | TraceContest":
    from elastream_lab.bench.tournament.play import TraceContest, with_gate
    from elastream_lab.bench.tournament.recorded_run import recorded_run
    from elastream_lab.bench.tournament.runs import RunContest

    named = args.policies or ([] if args.gate else [name for name in policy_names() if name not in NOT_ASKED_FOR])
    policies = with_gate(tuple(named), args.gate)
    given = {name: getattr(args, name) for name in OF_TRACES if getattr(args, name) is not None}
    if args.run:
        for name in given:
            raise SettingError(
                f"tournament --run: --{name.replace('_', '-')} is for traces; leave it out, a run has its own"
            )
        runs = tuple(recorded_run(base) for base in args.run)
        return RunContest(policies, runs, args.latency, args.td, args.seed)
    traces = tuple(given.pop("trace", None) or trace_names())
    given |= {} if args.td is None else {"td_s": args.td}
    return TraceContest(policies, traces, latency_s=args.latency, seed=args.seed, **given)
