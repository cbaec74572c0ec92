"""`elastream audit BASE_DIR`: what was read and created is finished, dropped, a dead letter or queued; all is readable."""

import argparse
import json
import shlex
import sys

from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream.lanes import Store, audit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the base directory of a run, on any filesystem that pyarrow opens")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def main(args: argparse.Namespace) -> int:
    store = Store(args.base)
    if not store.sizes("ledger"):
        raise SettingError(f"audit: {store} has no ledger; name the base directory of a run")
    found = audit(store)
    if args.json:
        sys.stdout.write(json.dumps(vars(found) | {"created": found.created}) + "\n")
    else:
        console = plain_console()
        console.print(f"tick {found.tick}")
        console.print(found.accounts())
        console.print(f"duplicates {found.duplicates}; kept for readers {found.kept}")
        if found.dead_letters:
            console.print(f"elastream letters {shlex.quote(str(store))} shows the dead letters and their errors")
        if found.expired:
            console.print(f"dead letters removed unread {found.expired}")
        for name, rows in found.lanes.items():
            if rows:
                console.print(f"  {name}: {rows} wait")
        for problem in found.problems:
            console.print(f"problem: {problem}", style="red")
        console.print(
            f"{len(found.problems)} problems" if found.problems else "all holds",
            style="red" if found.problems else "green",
        )
    return 1 if found.problems else 0
