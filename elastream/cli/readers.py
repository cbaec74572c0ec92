"""`elastream readers BASE`: who reads the outputs of a base, how far each has come; one that is gone can be forgotten."""

import argparse

from rich.table import Table

from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream.lanes import Store
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.readers import forget_reader, known_readers
from elastream.lanes.segments import LaneId


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the base directory of a run")
    parser.add_argument("--forget", metavar="NAME", help="a reader that is gone: nothing is kept for it any longer")


def main(args: argparse.Namespace) -> int:
    store, console = Store(args.base), plain_console()
    if not store.names("ledger"):
        raise SettingError(f"readers: {store} has no ledger; name the base directory of a run")
    state = LedgerReader(store).refresh()
    found = [reader for output in state.outputs for reader in known_readers(store, output)]
    if args.forget is not None:
        gone = [reader for reader in found if reader.name == args.forget]
        if not gone:
            names = ", ".join(sorted({reader.name for reader in found})) or "none"
            raise SettingError(f"readers: no reader {args.forget!r}; there are {names}")
        for reader in gone:
            forget_reader(store, reader.output, reader.name)
            console.print(f"{reader.name} of {reader.output} is forgotten")
        return 0
    table = Table("output", "reader", "has read", "still to read")
    for reader in found:
        appended = state.queue(LaneId(reader.output, 0)).appended
        table.add_row(reader.output, reader.name, str(reader.position), str(max(0, appended - reader.position)))
    for output in state.outputs:
        if not any(reader.output == output for reader in found):
            table.add_row(output, "none", "", str(len(state.queue(LaneId(output, 0)))))
    console.print(table)
    return 0
