"""`elastream tournament`: policies on a set of traces, on the simulator, in one table and one picture."""

import argparse
import json
import os
import sys
from pathlib import Path

from rich.markdown import Markdown

from elastream.cli.console import plain_console
from elastream.cli.simulator_options import add_simulator_arguments, simulator
from elastream.policies import POLICIES
from elastream.workload import trace_names

NOT_ASKED_FOR = ("static", "oracle")
"""One has as many forms as there are sizes; the other plays always."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="for example psps elastic; default: all")
    parser.add_argument(
        "--trace",
        action="append",
        metavar="NAME|FILE|SHAPE[@SPEED]",
        help="again for each; compressed into the time, or cut when there is a speed; default: those that ship",
    )
    parser.add_argument(
        "--latency", type=float, default=1.0, metavar="S", help="in time is what is finished within this"
    )
    parser.add_argument("--td", type=float, default=1.0, metavar="S", help="policies decide this often")
    parser.add_argument("--pool", type=int, default=32, help="the most replicas of every operator")
    parser.add_argument("--service-ms", type=float, default=20.0, help="what a tuple takes in every operator")
    parser.add_argument("--seconds", type=float, default=600.0, help="of virtual time, each run")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random; the same seed, the same run")
    parser.add_argument(
        "--gate", metavar="POLICY", help="exit 1 if it takes over 5 %% more than elastic and is in time no more often"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time; default: one per core")
    parser.add_argument("--report", metavar="DIR", default="elastream-tournament", help="where the files go")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_simulator_arguments(parser)


def main(args: argparse.Namespace) -> int:
    from elastream.bench.tournament import Contest, judge, play, with_gate
    from elastream.bench.tournament_report import document, standing_table, write_tournament

    console = plain_console(stderr=args.json)
    named = args.policies or ([] if args.gate else [name for name in POLICIES if name not in NOT_ASKED_FOR])
    contest = with_gate(
        Contest(
            tuple(named) or (args.gate,),
            tuple(args.trace or trace_names()),
            latency_s=args.latency,
            td_s=args.td,
            pool=args.pool,
            service_ms=args.service_ms,
            seconds=args.seconds,
            seed=args.seed,
        ),
        args.gate,
    )
    folder = Path(args.report) / f"simulated-{args.system}"
    entries = play(contest, simulator(args), console.print, jobs=args.jobs)
    gate = judge(entries, args.gate) if args.gate else None
    write_tournament(contest, entries, gate, folder)
    if args.json:
        sys.stdout.write(json.dumps(document(contest, entries, gate)) + "\n")
    else:
        console.print(Markdown(standing_table(entries)))
        if gate:
            console.print(gate.words)
        console.print(f"report {folder}/tournament.html")
    return 1 if gate and not gate.passed else 0
