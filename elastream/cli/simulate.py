"""`elastream simulate APP`: the same run on a model, in virtual time, with the same report."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.progress import Progress

from elastream.applications.load import application_names, load_app
from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.cli.guard_options import guards_of
from elastream.cli.policy_options import DEFAULT, POLICY_WORD, add_policy_arguments, chosen_policy
from elastream.cli.setting_flags import add_setting_flags, settings_of
from elastream.cli.simulator_options import add_simulator_arguments, simulator_options
from elastream.cli.summary import print_summary
from elastream.cli.workload_options import add_workload_arguments, chosen_arrivals
from elastream.policies import make_policy, policy_names
from elastream.report import write_report
from elastream.simulator.application import Application, simulate_application


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", help=f"one that was calibrated, or one of {', '.join(application_names())}")
    add_workload_arguments(parser)
    parser.add_argument("--seconds", type=float, help="stop after this time; default: when all has been read")
    parser.add_argument(
        "--policy", default=DEFAULT, metavar=POLICY_WORD, help=f"who decides: {', '.join(policy_names())}"
    )
    add_policy_arguments(parser)
    add_setting_flags(parser, "queues")
    add_simulator_arguments(parser)
    parser.add_argument(
        "--report",
        metavar="DIR",
        help="write report.json, series.parquet, report.html here; default: a temporary directory",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON, nothing else")


def main(args: argparse.Namespace) -> int:
    console = plain_console(stderr=args.json)
    simulated = simulator_options(args)
    policy = make_policy(chosen_policy(args) or args.policy)
    guards = guards_of(args)
    settings = settings_of(args)
    options = app_options(args.app, args.app_words)
    graph = load_app(args.app, chosen_arrivals(args), options)
    machine = simulated.profile.machine
    added_s = options["service_ms"] / 1e3 + machine.late_s if options.get("service_ms") else 0.0
    with Progress(console=console, transient=True, disable=args.json) as progress:
        task = progress.add_task("simulated seconds", total=None)
        done = simulate_application(
            Application(args.app, graph, simulated.profile.times(args.app), added_s),
            policy,
            machine,
            td_s=args.td,
            settings=settings,
            guards=guards,
            cluster=simulated.cluster,
            seconds=args.seconds,
            seed=args.seed,
            models=args.models,
            make_system=simulated.make_system,
            on_progress=lambda now_s: progress.update(task, completed=now_s),
        )
    folder = Path(args.report or tempfile.mkdtemp(prefix="elastream-report-"))
    report = write_report(done.record, done.events, folder)
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        print_summary(report, console)
        console.print(f"report {folder}/report.html")
    return 0
