"""`elastream state BASE`: what keyed operators remember; one key, or all of them as a Parquet file."""

import argparse
import json
import time

import pyarrow.parquet as pq
from rich.table import Table

from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream.lanes import Store
from elastream.state.table import StateSummary, state_of_key, state_table, summaries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the base directory of a run, which may be running")
    parser.add_argument("operator", nargs="?", help="one operator: its key groups by replica")
    parser.add_argument(
        "--key", nargs="+", metavar="VALUE", help="what it remembers of this key, a value for each of its columns"
    )
    parser.add_argument(
        "--export", metavar="FILE", help="write everything that it remembers to a Parquet file, a row per key"
    )


def main(args: argparse.Namespace) -> int:
    store, console = Store(args.base), plain_console()
    if not store.names("ledger"):
        raise SettingError(f"state: {store} has no ledger; name the base directory of a run")
    if args.operator is None:
        if args.key or args.export:
            raise SettingError("state: of which operator? write: elastream state BASE OPERATOR --key VALUE")
        console.print(_overview(summaries(store)))
        return 0
    if args.export:
        table = state_table(store, args.operator)
        pq.write_table(table, args.export)
        console.print(f"{table.num_rows} keys written to {args.export}", markup=False)
        return 0
    if args.key:
        found = state_of_key(store, args.operator, tuple(args.key))
        console.print(json.dumps(found, default=str), markup=False)
        return 0 if found is not None else 1
    known = [summary for summary in summaries(store) if summary.operator == args.operator]
    if not known:
        names = ", ".join(summary.operator for summary in summaries(store)) or "none"
        raise SettingError(f"state: no keyed operator {args.operator!r}; those that remember something: {names}")
    console.print(_overview(known))
    console.print(_groups(known[0]))
    return 0


def _overview(found: list[StateSummary]) -> Table:
    table = Table("operator", "key", "remembers", "keys", "bytes", "changes since written whole", "as of")
    for one in found:
        age = f"entry {one.entry}, {max(0.0, time.time() - one.at_s):.0f} s ago"
        table.add_row(one.operator, one.key, one.columns, f"{one.keys:,}", f"{one.bytes:,}", f"{one.changes:,}", age)
    return table


def _groups(one: StateSummary) -> Table:
    table = Table("replica", "key groups", "which")
    for lane in sorted(set(one.owners)):
        groups = [group for group, owner in enumerate(one.owners) if owner == lane]
        table.add_row(str(lane), str(len(groups)), _ranges(groups))
    return table


def _ranges(groups: list[int]) -> str:
    """Neighbours together: 0-15, 40."""
    parts: list[list[int]] = []
    for group in groups:
        if parts and parts[-1][1] == group - 1:
            parts[-1][1] = group
        else:
            parts.append([group, group])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
