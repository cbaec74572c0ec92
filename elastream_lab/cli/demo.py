"""`elastream demo`: real traffic with a spike, sized by PSPS, beside one replica and all replicas all the time."""

import argparse
from pathlib import Path

from elastream.cli.console import plain_console
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.suite import Suite
from elastream_lab.cli.bench_suites import run_and_show

POOL = 8
SERVICE_MS = 5.0
TD_S = 2.0

POLICIES = {"PSPS": "psps", "r = 1": "static:replicas=1", f"r = {POOL}": f"static:replicas={POOL}"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", metavar="DIR", default="elastream-demo", help="where the reports go")


def main(args: argparse.Namespace) -> int:
    scenarios = tuple(
        Scenario(
            name,
            workload="covid_tweets",
            speed=60,
            scale=0.42,
            policy=policy,
            td_s=TD_S,
            service_ms=SERVICE_MS,
            pool=POOL,
            r_over=4 * POOL,
        )
        for name, policy in POLICIES.items()
    )
    arrivals = scenarios[0].arrivals()
    assert arrivals is not None
    plain_console(soft_wrap=False).print(
        f"45 minutes of tweets in {arrivals.seconds:.0f} seconds, three times: the replicas decided by PSPS every {TD_S:g} s, "
        f"then one of each operator, then {POOL}. Every operator classifies for real and waits {SERVICE_MS:g} ms a tuple more."
    )
    title = "Tweets on a real trace: replicas decided by PSPS, one of each, eight of each"
    outcomes = run_and_show(Suite("demo", title, scenarios), Path(args.report), again=True)
    events = outcomes[0].report["events"]
    return 0 if events["entered"] == events["finished"] and not events["duplicates"] else 1
