"""`elastream simulate APP`: the same run on a model, in virtual time, with the same report."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.progress import Progress

from elastream.apps import BUILT_IN
from elastream.bench.scenario import Scenario
from elastream.cli.app_options import add_app_arguments, app_options
from elastream.cli.console import plain_console
from elastream.cli.guard_options import guards_of
from elastream.cli.policy_options import DEFAULT, add_policy_arguments, chosen_policy
from elastream.cli.simulator_options import add_simulator_arguments, simulator
from elastream.cli.summary import print_summary
from elastream.policies import POLICIES
from elastream.scoring import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", help=f"a built-in ({', '.join(BUILT_IN)}), or one that was calibrated")
    parser.add_argument("--trace", metavar="NAME|FILE|SHAPE", help="what arrives when: see elastream trace")
    parser.add_argument("--speed", type=float, default=1.0, help="compress the trace's time this many times")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the trace's events")
    parser.add_argument("--spike", action="append", default=[], metavar="KEY=N,...", help="see elastream trace")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random; the same seed, the same run")
    parser.add_argument("--seconds", type=float, help="stop after this time; default: when all has been read")
    parser.add_argument(
        "--policy", default=DEFAULT, metavar="NAME[:KEY=N,...]", help=f"who decides: {', '.join(POLICIES)}"
    )
    add_policy_arguments(parser)
    parser.add_argument("--q-size", type=int, help="the most tuples that may wait in one lane")
    parser.add_argument("--on-full", choices=["wait", "drop"], default="wait", help="what a full lane does")
    parser.add_argument("--t-out", type=float, metavar="S", help="drop tuples older than this")
    add_simulator_arguments(parser)
    parser.add_argument("--report", metavar="DIR", help="write report.json, series.parquet, report.html here")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, nothing else")
    add_app_arguments(parser)


def main(args: argparse.Namespace) -> int:
    console = plain_console(stderr=args.json)
    scenario = _scenario(args)
    plant, guards = simulator(args), guards_of(args)
    with Progress(console=console, transient=True, disable=args.json) as progress:
        task = progress.add_task("simulated seconds", total=None)
        done = plant.simulate(
            scenario, lambda now_s: progress.update(task, completed=now_s), args.models, guards=guards
        )
    folder = Path(args.report or tempfile.mkdtemp(prefix="elastream-report-"))
    report = write_report(done.record, done.events, folder)
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        print_summary(report, console)
        console.print(f"report {folder}/report.html")
    return 0


def _scenario(args: argparse.Namespace) -> Scenario:
    return Scenario(
        name=args.app,
        app=args.app,
        workload=args.trace,
        speed=args.speed,
        scale=args.scale,
        spikes=tuple(args.spike),
        seed=args.seed,
        policy=chosen_policy(args) or args.policy,
        td_s=args.td,
        q_size=args.q_size,
        on_full=args.on_full,
        t_out_s=args.t_out,
        seconds=args.seconds,
        **app_options(args),
    )
