"""`elastream bench SUITE`: the engine against Spark itself, policies against one another, or a suite of scenarios."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rich.markdown import Markdown

from elastream.bench.suite import Suite, load_suite, suite_names
from elastream.cli.app_options import add_app_arguments, app_options
from elastream.cli.console import plain_console
from elastream.cli.simulator_options import add_simulator_arguments, simulator
from elastream.control import Guards
from elastream.errors import SettingError

if TYPE_CHECKING:
    from elastream.bench.outcomes import Outcome
    from elastream.bench.runner import Plant

PLANTS = ("spark", "simulator")

MEASURED = {
    "engine": "the engine against Spark itself, on this machine, in one run",
    "kafka": "from topic to topic, beside the plain query, on a broker of its own",
    "dataframe": "what work costs in a dataframe operator, beside the plain query",
    "keyed": "state per key against no state and Spark's own count, moved, lost with its host, started again",
    "redirection": "skewed keys by fields, by redirection of key groups, and with heavy keys split",
    "platform": "what threads, processes and machines do to a filter that computes and to one that waits",
    "state": "the state of an operator cut into more partitions while tuples come",
}
"""Each writes what it measured as NAME.json and NAME.md, and knows whether its goals are met."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    suites = parser.add_subparsers(dest="suite", required=True, metavar="SUITE")
    for name, text in MEASURED.items():
        measured = suites.add_parser(name, help=text)
        measured.add_argument("--report", metavar="DIR", default="elastream-bench", help="where its files go")
        measured.add_argument(
            "--quick", action="store_true", help="every part for a few seconds: does it run, not how fast"
        )
        measured.add_argument("--json", action="store_true", help="print one JSON document")
        if name == "platform":
            _add_platform(measured)
    _add_peers(suites.add_parser("peers", help="the same tuples on Elastream, Flink and Storm (make peers)"))
    decisions = suites.add_parser("decisions", help="how long a decision takes, for 10 to 1,000 operators")
    decisions.add_argument("--policy", default="psps", metavar="NAME[:KEY=N,...]", help="who decides")
    decisions.add_argument("--json", action="store_true", help="print one JSON document")
    speed = suites.add_parser("simulator", help="how fast the simulator is")
    speed.add_argument("--json", action="store_true", help="print one JSON document")
    _add_policies(suites.add_parser("policies", help="the same application and workload, once for each policy"))
    fidelity = suites.add_parser("fidelity", help="the simulator against Spark, on two traces, about twelve minutes")
    fidelity.add_argument("--again", action="store_true", help="run also on Spark what an earlier run has finished")
    fidelity.add_argument("--profile", metavar="FILE", help="from elastream calibrate; default: the one that ships")
    fidelity.add_argument("--report", metavar="DIR", default="elastream-bench", help="where the reports go")
    fidelity.add_argument("--json", action="store_true", help="print one JSON document")
    run = suites.add_parser("run", help="the scenarios of your own YAML file")
    run.add_argument("file", metavar="FILE.yaml", help="its keys are those of the suites that ship: docs/suites.md")
    _add_suite(run)
    for name in suite_names():
        shipped = suites.add_parser(name, help=load_suite(name).title)
        shipped.set_defaults(file=name)
        _add_suite(shipped)


def _add_platform(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", metavar="URL", help="a cluster instead of this machine, with all machines it gives")
    parser.add_argument("--base", metavar="DIR", help="a directory that all machines of the cluster see")
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="of this machine, from elastream calibrate; default: the one that ships. REPORT/profile.json has it with "
        "the crowding that was measured",
    )


def _add_suite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--again", action="store_true", help="run also what an earlier run has finished")
    parser.add_argument("--plant", choices=PLANTS, default="spark", help="what the scenarios run on")
    parser.add_argument("--report", metavar="DIR", default="elastream-bench", help="where the reports go")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--traces",
        metavar="DIR",
        help="where traces are that do not ship; else here, $ELASTREAM_TRACES, ../shared/traces",
    )
    add_simulator_arguments(parser)


def _add_peers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=180.0, metavar="N", help="of the trace; default 180")
    parser.add_argument("--runs", type=int, default=2, metavar="N", help="of every row, for they differ; default 2")
    parser.add_argument("--peers", metavar="DIR", default=".peers", help="where make peers put the other systems")
    parser.add_argument("--report", metavar="DIR", default="elastream-bench", help="where its files go")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("policies", nargs="+", metavar="POLICY[@GROUPING]", help="for example psps static:replicas=1")
    parser.add_argument("--app", default="tweets", help="the application; default tweets")
    parser.add_argument("--trace", metavar="NAME|FILE|SHAPE", help="what arrives when: see elastream trace")
    parser.add_argument("--speed", type=float, default=1.0, help="compress the trace's time this many times")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the trace's events")
    parser.add_argument("--spike", action="append", default=[], metavar="KEY=N,...", help="see elastream trace")
    parser.add_argument("--seed", type=int, default=0, help="of what is random in the workload")
    parser.add_argument("--td", type=float, default=5.0, metavar="S", help="policies decide this often")
    parser.add_argument("--t-out", type=float, metavar="S", help="drop tuples older than this")
    parser.add_argument("--q-size", type=int, help="the most tuples that may wait in one lane")
    parser.add_argument("--on-full", choices=["wait", "drop"], default="wait", help="what a full lane does")
    parser.add_argument("--slack", type=float, default=Guards.slack, help="how far below a size a need must be")
    parser.add_argument(
        "--r-over", type=int, metavar="N", help="replicas of a run sized for the peak; default: reckoned"
    )
    parser.add_argument("--report", metavar="DIR", default="elastream-bench", help="where the reports go")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_app_arguments(parser)


def main(args: argparse.Namespace) -> int:
    parts = {
        "engine": _engine,
        "kafka": _kafka,
        "dataframe": _dataframe,
        "keyed": _keyed,
        "redirection": _redirection,
        "platform": _platform,
        "state": _state,
        "peers": _peers,
        "decisions": _decisions,
        "policies": _policies,
        "fidelity": _fidelity,
        "simulator": _speed,
    }
    return parts.get(args.suite, _suite)(args)


def _engine(args: argparse.Namespace) -> int:
    from elastream.bench.engine import bench_engine
    from elastream.bench.plot import draw_bench

    return _measure(args, partial(bench_engine, args.quick), draw_bench)


def _kafka(args: argparse.Namespace) -> int:
    from elastream.bench.kafka import bench_kafka

    return _measure(args, partial(bench_kafka, args.quick))


def _dataframe(args: argparse.Namespace) -> int:
    from elastream.bench.dataframe import bench_dataframe

    return _measure(args, partial(bench_dataframe, args.quick))


def _keyed(args: argparse.Namespace) -> int:
    from elastream.bench.keyed import bench_keyed

    return _measure(args, partial(bench_keyed, args.quick))


def _redirection(args: argparse.Namespace) -> int:
    from elastream.bench.redirection import bench_redirection

    return _measure(args, partial(bench_redirection, args.quick))


def _platform(args: argparse.Namespace) -> int:
    from elastream.bench.platform import PlatformBench, bench_platform
    from elastream.bench.platform_plot import draw_platform
    from elastream.simulator.profile import load_profile

    if (args.master is None) != (args.base is None):
        raise SettingError("--master and --base go together: a cluster needs a directory that all its machines see")
    known = load_profile(args.profile)

    def bench(quick: bool, say: Callable[[str], None]) -> PlatformBench:
        return bench_platform(quick, say, known=known, master=args.master, folder=args.base)

    def draw(found: PlatformBench, path: Path) -> None:
        draw_platform(found, path)
        document = json.dumps(found.profile(known).to_json(), indent=2)
        path.with_name("profile.json").write_text(document + "\n", encoding="utf-8")

    return _measure(args, partial(bench, args.quick), draw)


def _state(args: argparse.Namespace) -> int:
    from elastream.bench.state import bench_state

    return _measure(args, partial(bench_state, args.quick))


def _peers(args: argparse.Namespace) -> int:
    from elastream.bench.peers.compare import bench_peers
    from elastream.bench.peers.plot import draw_peers

    if not 1 <= args.seconds < float("inf"):
        raise SettingError(f"--seconds must be 1 or more, got {args.seconds:g}")
    if args.runs < 1:
        raise SettingError(f"--runs must be 1 or more, got {args.runs}")
    return _measure(args, partial(bench_peers, args.seconds, args.runs, Path(args.peers)), draw_peers)


class Measured(Protocol):
    """What a benchmark gives."""

    @property
    def met(self) -> bool: ...

    def to_json(self) -> dict[str, Any]: ...

    def to_markdown(self) -> str: ...


T = TypeVar("T", bound=Measured)


def _measure(
    args: argparse.Namespace,
    bench: Callable[[Callable[[str], None]], T],
    draw: Callable[[T, Path], None] | None = None,
) -> int:
    console = plain_console(stderr=args.json)
    report = Path(args.report)
    # An unusable directory is better found now than in ten minutes.
    report.mkdir(parents=True, exist_ok=True)
    result = bench(console.print)
    document, text = result.to_json(), result.to_markdown()
    (report / f"{args.suite}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (report / f"{args.suite}.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    if draw is not None:
        draw(result, report / f"{args.suite}.png")
    console.print(f"report written to {report}")
    if args.json:
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        console.print(Markdown(text))
    return 0 if result.met else 1


def _decisions(args: argparse.Namespace) -> int:
    from elastream.bench.decisions import bench_decisions, decision_table
    from elastream.bench.overhead import bench_overhead, overhead_table

    times = bench_decisions(args.policy)
    learning = bench_overhead() if args.policy.partition(":")[0] == "autrascale" else []
    if args.json:
        document = [vars(time) for time in times]
        sys.stdout.write(json.dumps(document + [vars(overhead) for overhead in learning]) + "\n")
    else:
        console = plain_console(soft_wrap=False)
        console.print(Markdown(decision_table(times)))
        if learning:
            console.print(Markdown(overhead_table(learning)))
    return 0 if all(time.met for time in times) else 1


def _speed(args: argparse.Namespace) -> int:
    from elastream.bench.simulator_speed import bench_simulator, speed_table

    console = plain_console(stderr=args.json)
    found = bench_simulator(console.print)
    if args.json:
        sys.stdout.write(json.dumps([its.to_json() for its in found]) + "\n")
    else:
        console.print(Markdown(speed_table(found)))
    return 0 if all(its.met for its in found) else 1


def _suite(args: argparse.Namespace) -> int:
    suite = load_suite(args.file)
    if args.traces:
        if not Path(args.traces).is_dir():
            raise SettingError(f"--traces {args.traces}: no such directory")
        suite = suite.with_traces(args.traces)
    folder = Path(args.report) / suite.name
    if suite.simulated is not None:
        from elastream.bench.suite_model import simulator_of

        own = simulator_of(suite, args.profile, args.fidelity)
        run_and_show(suite, folder, again=True, as_json=args.json, plant=own)
    elif args.plant == "simulator":
        plant = simulator(args)
        run_and_show(suite, folder / f"simulated-{args.system}", again=True, as_json=args.json, plant=plant)
    else:
        run_and_show(suite, folder, again=args.again, as_json=args.json)
    return 0


def _fidelity(args: argparse.Namespace) -> int:
    from elastream.bench.fidelity import bench_fidelity, fidelity_scenarios, fidelity_table
    from elastream.bench.simulator_plant import SimulatorPlant
    from elastream.bench.spark_plant import SparkPlant
    from elastream.cli.suite_progress import watch_on
    from elastream.simulator.profile import load_profile

    console = plain_console(stderr=args.json)
    found = bench_fidelity(
        fidelity_scenarios(),
        SparkPlant(watch_on(console)),
        SimulatorPlant(load_profile(args.profile)),
        Path(args.report) / "fidelity",
        console.print,
        again=args.again,
    )
    if args.json:
        sys.stdout.write(json.dumps([its.to_json() for its in found]) + "\n")
    else:
        console.print(Markdown(fidelity_table(found)))
    return 0 if all(its.met for its in found) else 1


def _policies(args: argparse.Namespace) -> int:
    from elastream.bench.scenario import Scenario

    same = {
        "app": args.app,
        "workload": args.trace,
        "speed": args.speed,
        "scale": args.scale,
        "spikes": tuple(args.spike),
        "seed": args.seed,
        "td_s": args.td,
        "t_out_s": args.t_out,
        "q_size": args.q_size,
        "on_full": args.on_full,
        "slack": args.slack,
        "r_over": args.r_over,
        **app_options(args),
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
    from elastream.bench.outcomes import outcome_table, paper_table
    from elastream.bench.paper_order import order_line
    from elastream.bench.runner import run_suite
    from elastream.bench.spark_plant import SparkPlant
    from elastream.cli.suite_progress import watch_on

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
