"""`elastream replay RUN_DIR --policy NAME`: what another policy would have decided, from a run's journal and without Spark."""

import argparse
import json
import sys
from typing import Any

from rich.table import Table

from elastream.cli.console import plain_console
from elastream.cli.policy_options import POLICY_WORD
from elastream.control import JournalEntry, read_run
from elastream.control.replay import Replayed, replay
from elastream.policies import make_policy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_DIR", help="the base directory of a run that had a policy")
    parser.add_argument("--policy", required=True, metavar=POLICY_WORD, help="who shall look at it")
    parser.add_argument("--all", action="store_true", help="every interval, not only those in which the two differ")
    parser.add_argument("--json", action="store_true", help="print one JSON document, nothing else, on standard output")


def main(args: argparse.Namespace) -> int:
    entries = read_run(args.run, f"replay {args.run}")
    played = list(replay(entries, make_policy(args.policy)))
    if args.json:
        sys.stdout.write(json.dumps(_document(entries, played, args.policy)) + "\n")
    else:
        _print(entries, played, args.policy, args.all)
    return 0


def _document(entries: list[JournalEntry], played: list[Replayed], policy: str) -> dict[str, Any]:
    return {
        "recorded_policy": entries[0].policy,
        "policy": policy,
        "intervals": len(entries),
        "differ": sum(it.differs for it in played),
        "decisions": [
            {
                "t_s": round(it.t_s, 3),
                "operator": it.operator,
                "replicas": it.before,
                "recorded": it.recorded,
                "would_be": it.would_be,
                "reason": it.reason,
            }
            for it in played
        ],
    }


def _print(entries: list[JournalEntry], played: list[Replayed], policy: str, everything: bool) -> None:
    console = plain_console(soft_wrap=False)
    shown = [it for it in played if everything or it.differs]
    table = Table(title=f"{policy} on the journal of {entries[0].policy}")
    for column, where in (("s", "right"), ("operator", "left"), ("had", "right"), ("decided", "right")):
        table.add_column(column, justify=where)  # type: ignore[arg-type]
    table.add_column(policy, justify="right")
    table.add_column("because")
    for it in shown:
        table.add_row(f"{it.t_s:.1f}", it.operator, str(it.before), str(it.recorded), str(it.would_be), it.reason)
    if shown:
        console.print(table)
    differ = sum(it.differs for it in played)
    console.print(
        f"{len(entries)} intervals, {len(played)} decisions; {policy} would have decided {differ} of them differently. Each is "
        "judged by what was observed then: what the other sizes would have led to is not known.",
        highlight=False,
    )
