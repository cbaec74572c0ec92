"""`elastream check BASE APP`: what would become of a base with this application. Nothing is changed."""

import argparse
from pathlib import Path

from elastream.applications.load import load_app
from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.cli.driver import look
from elastream.engine.operations.check_base import preview
from elastream.errors import SettingError
from elastream.lanes.ledger import Ledger
from elastream.lanes.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the base directory of a run; one that is not there yet is new")
    parser.add_argument("app", help="path/to/app.py:topology, module:topology, or the name of an application")
    parser.add_argument(
        "--discard",
        metavar="OPERATOR",
        action="append",
        default=[],
        help="as if what waits for this operator were discarded; may be repeated; default: nothing is",
    )
    parser.epilog = "exit code 0: the run would begin; 1: it would be refused, with the reasons"


def main(args: argparse.Namespace) -> int:
    if "://" not in args.base and Path(args.base).exists() and not Path(args.base).is_dir():
        raise SettingError(f"check: {args.base} is a file, expected a directory; name the base directory of a run")
    graph = load_app(args.app, None, app_options(args.app, args.app_words))
    store, console = Store(args.base), plain_console()
    seen = preview(graph, Ledger(store).load(), str(store), tuple(args.discard))
    for line in seen.lines:
        console.print(line)
    refused = list(seen.refused)
    document, live = look(store)
    if document is not None and live.is_running:
        refused.append(f"base {store}: {live.words}; stop it first: elastream stop {args.base}")
    for reason in refused:
        console.print(f"refused: {reason}", style="red")
    if not refused:
        console.print("the run would begin; nothing was changed")
    return 1 if refused else 0
