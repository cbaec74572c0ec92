"""`elastream letters BASE`: the tuples on which operators raised; look at them, take them away, or send them again."""

import argparse
from collections import Counter

from rich.table import Table

from elastream.cli.console import plain_console
from elastream.engine.letters import drain_letters, expired_letters, read_letters, retry_letters
from elastream.errors import SettingError
from elastream.lanes import Store

NEWEST = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the base directory of a run")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--drain", metavar="FILE.parquet", help="write them there and take them away, also while a run goes on"
    )
    what.add_argument(
        "--retry", action="store_true", help="put their tuples back, for the next run with this base to serve"
    )


def main(args: argparse.Namespace) -> int:
    store, console = Store(args.base), plain_console()
    if not store.names("ledger"):
        raise SettingError(f"letters: {store} has no ledger; name the base directory of a run")
    if args.retry:
        retried = retry_letters(store)
        console.print(f"{retried.tuples} tuples wait for their operators again; {retried.stay} letters stay")
        if retried.timers:
            console.print(
                f"{retried.timers} of them are of timers, which have a key and no tuple to serve again; "
                "take them away with --drain FILE.parquet"
            )
        return 0
    if args.drain:
        letters = drain_letters(store, args.drain)
        console.print(f"{letters} letters are in {args.drain}")
        return 0
    rows = read_letters(store).to_pylist()
    table = Table("operator", "error", "letters")
    for (operator, error), count in Counter((row["operator"], row["error"]) for row in rows).most_common(20):
        table.add_row(operator, error, str(count))
    console.print(table if rows else "no letters")
    if expired := expired_letters(store):
        console.print(f"{expired} older letters were removed unread: they were too many or too old")
    for row in rows[-NEWEST:]:
        console.print(
            f"{row['failed_at']:%Y-%m-%d %H:%M:%S}  {row['operator']}, replica {row['replica']}: {row['row']}"
        )
    return 0
