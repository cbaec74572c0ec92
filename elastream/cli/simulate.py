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
from elastream.cli.simulator_options import add_simulator_arguments, simulator
from elastream.cli.summary import print_summary
from elastream.control import Guards
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
        "--policy", default="psps", metavar="NAME[:KEY=N,...]", help=f"who decides: {', '.join(POLICIES)}"
    )
    parser.add_argument("--models", metavar="DIR", help="where policies that learn keep models for other runs")
    parser.add_argument("--td", type=float, default=5.0, metavar="S", help="the policy decides this often")
    parser.add_argument("--slots", type=int, help="the most replicas of all operators together")
    parser.add_argument(
        "--cooldown", type=float, default=0.0, metavar="S", help="a rescaled operator stays for so long"
    )
    parser.add_argument("--largest-step", type=int, metavar="N", help="the most replicas added or removed at once")
    parser.add_argument(
        "--slack", type=float, default=Guards.slack, help="how far below a size a need must be to shrink"
    )
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
    plant = simulator(args)
    with Progress(console=console, transient=True, disable=args.json) as progress:
        task = progress.add_task("simulated seconds", total=None)
        done = plant.simulate(scenario, lambda now_s: progress.update(task, completed=now_s), args.models)
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
        policy=args.policy,
        td_s=args.td,
        q_size=args.q_size,
        on_full=args.on_full,
        t_out_s=args.t_out,
        slots=args.slots,
        cooldown_s=args.cooldown,
        largest_step=args.largest_step,
        slack=args.slack,
        seconds=args.seconds,
        **app_options(args),
    )
