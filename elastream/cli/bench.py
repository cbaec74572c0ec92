"""`elastream bench engine`: the engine against Spark itself. `elastream bench policies`: policies against one another."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from elastream.cli.apps import add_app_arguments, app_options, load_app
from elastream.cli.live import watch
from elastream.control import Guards, checked_td
from elastream.engine import Settings
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.workload import load_trace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    suites = parser.add_subparsers(dest="suite", required=True, metavar="SUITE")
    engine = suites.add_parser("engine", help="the engine against Spark itself, on this machine, in one run")
    engine.add_argument("--report", metavar="DIR", default="elastream-bench", help="where engine.json, .md and .png go")
    engine.add_argument("--quick", action="store_true", help="every part for a few seconds: does it run, not how fast")
    engine.add_argument("--json", action="store_true", help="print one JSON document")
    decisions = suites.add_parser("decisions", help="how long a decision takes, for 10 to 1,000 operators")
    decisions.add_argument("--policy", default="psps", metavar="NAME[:KEY=N,...]", help="who decides")
    decisions.add_argument("--json", action="store_true", help="print one JSON document")
    policies = suites.add_parser("policies", help="the same application and workload, once for each policy")
    policies.add_argument("policies", nargs="+", metavar="POLICY[@GROUPING]", help="for example psps static:replicas=1")
    policies.add_argument("--app", default="tweets", help="the application; default tweets")
    policies.add_argument("--trace", metavar="NAME|FILE", help="what arrives when")
    policies.add_argument("--speed", type=float, default=1.0, help="compress the trace's time this many times")
    policies.add_argument("--scale", type=float, default=1.0, help="multiply the trace's events")
    policies.add_argument("--td", type=float, default=5.0, metavar="S", help="policies decide this often")
    policies.add_argument("--t-out", type=float, metavar="S", help="drop tuples older than this")
    policies.add_argument("--q-size", type=int, help="the most tuples that may wait in one lane")
    policies.add_argument("--on-full", choices=["wait", "drop"], default="wait", help="what a full lane does")
    policies.add_argument("--slack", type=float, default=Guards.slack, help="how far below a size a need must be")
    policies.add_argument("--report", metavar="DIR", default="elastream-bench", help="where the reports go")
    policies.add_argument("--json", action="store_true", help="print one JSON document")
    add_app_arguments(policies)


def main(args: argparse.Namespace) -> int:
    suites = {"engine": _engine, "decisions": _decisions, "policies": _policies}
    return suites[args.suite](args)


def _engine(args: argparse.Namespace) -> int:
    from elastream.bench.engine import bench_engine

    console = Console(stderr=args.json, highlight=False, soft_wrap=True)
    result = bench_engine(Path(args.report), args.quick, console.print)
    if args.json:
        sys.stdout.write(json.dumps(result.to_json()) + "\n")
    else:
        console.print(Markdown(result.to_markdown()))
    return 0 if all(goal.met for goal in result.goals()) else 1


def _decisions(args: argparse.Namespace) -> int:
    from elastream.bench.decisions import bench_decisions, decision_table

    times = bench_decisions(args.policy)
    if args.json:
        sys.stdout.write(json.dumps([vars(time) for time in times]) + "\n")
    else:
        Console(highlight=False).print(Markdown(decision_table(times)))
    return 0 if all(time.met for time in times) else 1


def _policies(args: argparse.Namespace) -> int:
    from elastream.bench.policies import Trial, compare, outcome_table

    console = Console(stderr=args.json, highlight=False)
    checked_td(args.td)
    for word in args.policies:
        make_policy(word.partition("@")[0])
    if args.trace is None and (args.speed != 1.0 or args.scale != 1.0):
        raise SettingError("--speed and --scale change a trace; name one with --trace")
    arrivals = load_trace(args.trace, speed=args.speed, scale=args.scale) if args.trace else None
    settings = Settings(q_size=args.q_size, on_full=args.on_full, t_out_s=args.t_out)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="elastream-results-") as results:
        for position, word in enumerate(args.policies):
            policy, at, grouping = word.partition("@")
            options = app_options(args) | ({"grouping": grouping} if at else {})
            if args.database is None and args.app in ("tweets", "tweets-complex", "dns"):
                options["database"] = f"{results}/{position}.sqlite"
            before = sum(trial.policy == policy and trial.label.startswith(word) for trial in trials)
            label = f"{word} ({before + 1})" if before else word
            trials.append(Trial(label, policy, load_app(args.app, arrivals, options)))
        outcomes = compare(
            trials,
            Path(args.report),
            lambda handle, record, goes_on: watch(handle, record, console, goes_on),
            td_s=args.td,
            guards=Guards(slack=args.slack),
            settings=settings,
            say=console.print,
        )
    if args.json:
        sys.stdout.write(json.dumps({outcome.label: outcome.report for outcome in outcomes}) + "\n")
    else:
        console.print(Markdown(outcome_table(outcomes, brief=True)))
        console.print(f"report {args.report}/policies.png", soft_wrap=True)
    return 0
