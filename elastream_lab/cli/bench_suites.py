"""Suites: scenarios one after another, of a file or of the command line, and their table."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markdown import Markdown

from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.cli.setting_flags import given_settings
from elastream.errors import SettingError
from elastream_lab.bench.suites.suite import Suite, load_suite
from elastream_lab.cli.simulator_options import simulator

if TYPE_CHECKING:
    from elastream_lab.bench.suites.outcomes import Outcome
    from elastream_lab.bench.suites.runner import Plant


def shipped_suite(args: argparse.Namespace) -> int:
    suite = load_suite(args.file)
    if args.traces:
        if not Path(args.traces).is_dir():
            raise SettingError(f"--traces {args.traces}: no such directory")
        suite = suite.with_traces(args.traces)
    folder = Path(args.report) / suite.name
    if suite.simulated is not None:
        from elastream_lab.bench.suites.suite_model import simulator_of

        own = simulator_of(suite, args.profile, args.fidelity)
        run_and_show(suite, folder, again=True, as_json=args.json, plant=own)
    elif args.plant == "simulator":
        plant = simulator(args)
        run_and_show(suite, folder / f"simulated-{args.system}", again=True, as_json=args.json, plant=plant)
    else:
        run_and_show(suite, folder, again=args.again, as_json=args.json)
    return 0


def compared_policies(args: argparse.Namespace) -> int:
    from elastream_lab.bench.suites.scenario import Scenario

    same = {
        "app": args.app,
        "workload": args.trace,
        "speed": args.speed,
        "scale": args.scale,
        "spikes": tuple(args.spike),
        "seed": args.seed,
        "td_s": args.td,
        **given_settings(args).get("queues", {}),
        "slack": args.slack,
        "r_over": args.r_over,
        **app_options(args.app, args.app_words),
    }
    scenarios: list[Scenario] = []
    for word in args.policies:
        policy, at, grouping = word.partition("@")
        before = sum(scenario.name.partition(" (")[0] == word for scenario in scenarios)
        name = f"{word} ({before + 1})" if before else word
        scenarios.append(Scenario(**{**same, "name": name, "policy": policy} | ({"grouping": grouping} if at else {})))
    if not scenarios:
        raise SettingError("expected a policy or more")
    suite = Suite("policies", f"Policies on {args.app}", tuple(scenarios))
    run_and_show(suite, Path(args.report), again=True, as_json=args.json)
    return 0


def run_and_show(
    suite: Suite, folder: Path, *, again: bool, as_json: bool = False, plant: "Plant | None" = None
) -> "list[Outcome]":
    """Run what is left of a suite, on Spark unless told otherwise, and print its table."""
    from elastream_lab.bench.suites.outcomes import outcome_table, paper_table
    from elastream_lab.bench.suites.paper_order import order_line
    from elastream_lab.bench.suites.runner import run_suite
    from elastream_lab.bench.suites.spark_plant import SparkPlant
    from elastream_lab.cli.suite_progress import watch_on

    console = plain_console(stderr=as_json)
    outcomes = run_suite(suite, plant or SparkPlant(watch_on(console)), folder, console.print, again=again)
    if as_json:
        sys.stdout.write(json.dumps({outcome.label: outcome.report for outcome in outcomes}) + "\n")
        return outcomes
    console.print(Markdown(f"**{suite.title}**\n\n" + outcome_table(outcomes, suite.columns, brief=True)))
    paper = {scenario.name: dict(scenario.paper) for scenario in suite.scenarios}
    if theirs := paper_table(outcomes, paper):
        console.print(Markdown(theirs))
        console.print(order_line(outcomes, paper))
    if suite.note:
        console.print(suite.note)
    console.print(f"report {folder}/{suite.name}.html")
    return outcomes
