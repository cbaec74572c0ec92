"""`elastream fuzz`: damaged input of every kind; each must be answered with one clear line, or be accepted."""

import argparse

from rich.table import Table

from elastream.cli.console import plain_console
from elastream_lab.chaos.fuzz import fuzz

SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--inputs", type=int, default=20_000, help="how many damaged inputs in all; default 20,000")
    parser.add_argument("--seed", type=int, default=1, help="of what is random")


def main(args: argparse.Namespace) -> int:
    console = plain_console()
    tallies = fuzz(args.inputs, args.seed, console.print)
    table = Table("input", "damaged", "accepted", "refused with one line", "failed")
    for name, tally in tallies.items():
        table.add_row(name, *map(str, (tally.inputs, tally.accepted, tally.refused, len(tally.failures))))
    console.print(table)
    failed = {name: tally.failures for name, tally in tallies.items() if tally.failures}
    for name, failures in failed.items():
        for failure in list(dict.fromkeys(failures))[:SHOWN]:
            console.print(f"{name}: {failure}", style="red")
    console.print(
        f"{sum(map(len, failed.values()))} failed" if failed else "all answered", style="red" if failed else "green"
    )
    return 1 if failed else 0
