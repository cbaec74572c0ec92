"""`elastream bench SUITE`: the engine against Spark itself, policies against one another, or a suite of scenarios."""

import argparse

from elastream.cli.policy_options import POLICY_WORD
from elastream.cli.setting_flags import add_setting_flags
from elastream.control import Guards
from elastream_lab.bench.suites.suite import load_suite, suite_names
from elastream_lab.cli.bench_measured import MEASURED
from elastream_lab.cli.bench_suites import compared_policies, shipped_suite
from elastream_lab.cli.simulator_options import add_simulator_arguments

PLANTS = ("spark", "simulator")

ABOUT = {
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
    for name, text in ABOUT.items():
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
    decisions.add_argument("--policy", default="psps", metavar=POLICY_WORD, help="who decides")
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
        help="where traces are that do not ship; else here and in $ELASTREAM_TRACES",
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
    parser.add_argument(
        "--td", type=float, metavar="S", help="policies decide this often; default: at their own pace, else every 5 s"
    )
    add_setting_flags(parser, "queues")
    parser.add_argument("--slack", type=float, default=Guards.slack, help="how far below a size a need must be")
    parser.add_argument(
        "--r-over", type=int, metavar="N", help="replicas of a run sized for the peak; default: reckoned"
    )
    parser.add_argument("--report", metavar="DIR", default="elastream-bench", help="where the reports go")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def main(args: argparse.Namespace) -> int:
    if args.suite in MEASURED:
        return MEASURED[args.suite](args)
    return compared_policies(args) if args.suite == "policies" else shipped_suite(args)
