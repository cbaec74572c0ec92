"""`elastream demo`: real traffic with a spike, sized by PSPS, beside one replica and all replicas all the time."""

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from elastream.apps.tweets import topology
from elastream.bench.policies import Trial, compare, outcome_table
from elastream.cli.live import watch
from elastream.workload import load_trace

POOL = 8
SPEED = 60
SCALE = 0.42
SERVICE_MS = 5.0
TD_S = 2.0

TRIALS = {"PSPS": "psps", "r = 1": "static:replicas=1", f"r = {POOL}": f"static:replicas={POOL}"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", metavar="DIR", default="elastream-demo", help="where the reports go")


def main(args: argparse.Namespace) -> int:
    console = Console(highlight=False)
    arrivals = load_trace("covid_tweets", speed=SPEED, scale=SCALE)
    console.print(
        f"45 minutes of tweets in {arrivals.seconds:.0f} seconds, three times: the replicas decided by PSPS every {TD_S:g} s, "
        f"then one of each operator, then {POOL}. Every operator classifies for real and waits {SERVICE_MS:g} ms a tuple more."
    )
    with tempfile.TemporaryDirectory(prefix="elastream-demo-") as results:
        trials = [
            Trial(
                label,
                policy,
                topology(arrivals, database=f"{results}/{number}.sqlite", service_ms=SERVICE_MS, replicas=POOL).build(),
            )
            for number, (label, policy) in enumerate(TRIALS.items())
        ]
        console.print(str(trials[0].graph))
        outcomes = compare(
            trials,
            Path(args.report),
            lambda handle, record, goes_on: watch(handle, record, console, goes_on),
            td_s=TD_S,
            say=console.print,
        )
    console.print(Markdown(outcome_table(outcomes, brief=True)))
    console.print(f"report {args.report}/policies.png and {args.report}/PSPS/report.html", soft_wrap=True)
    events = outcomes[0].report["events"]
    return 0 if events["entered"] == events["finished"] and not events["duplicates"] else 1
