"""`elastream demo`: a minute of a match day, replicas changed by hand on a schedule that is printed first."""

import argparse
from pathlib import Path

from rich.console import Console

from elastream.apps.demo import topology
from elastream.cli.run import run_and_report
from elastream.engine import Settings

SCHEDULE = [
    (9.0, "look up", 4),
    (13.0, "score", 2),
    (15.0, "look up", 6),
    (25.0, "look up", 3),
    (38.0, "look up", 4),
    (49.0, "look up", 2),
    (50.0, "score", 1),
    (55.0, "look up", 1),
]
"""(second, operator, replicas): up before the crowds of the two matches, down when they leave."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", metavar="DIR", default="elastream-demo", help="where the report goes")


def main(args: argparse.Namespace) -> int:
    console = Console()
    console.print(
        "Twelve hours of the 1998 World Cup site in one minute. Replicas will be changed by hand:", highlight=False
    )
    for second, operator, replicas in SCHEDULE:
        console.print(f"  at {second:4.0f} s  {operator} -> {replicas}", highlight=False)
    report = run_and_report(
        topology().build(),
        Settings(),
        SCHEDULE,
        base=None,
        master=None,
        seconds=None,
        folder=Path(args.report),
        console=console,
    )
    events = report["events"]
    assert isinstance(events, dict)
    return 0 if events["entered"] == events["finished"] and not events["duplicates"] else 1
