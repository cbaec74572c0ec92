"""`elastream status BASE`: the run of a base, on one screen or as JSON.

Exit code 0: a driver runs. 1: none runs, and the last run ended in order. 3: the last run failed, was killed, or its driver is silent.
"""

import argparse
import sys

import msgspec

from elastream.cli.console import plain_console
from elastream.cli.driver import NOT_RUNNING, add_base_argument, look, open_base
from elastream.cli.status_view import view

FAILED = 3
EXIT_CODES = "exit code 0: a driver runs; 1: none runs; 3: the last run failed, was killed, or its driver is silent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_base_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the status document as JSON, with the field `state`")
    parser.epilog = EXIT_CODES


def main(args: argparse.Namespace) -> int:
    store = open_base(args.base, "status")
    document, live = look(store)
    if args.json:
        fields = msgspec.to_builtins(document) if document is not None else {}
        sys.stdout.write(msgspec.json.encode({"state": live.state, "words": live.words, **fields}).decode() + "\n")
    else:
        console = plain_console(soft_wrap=False)
        console.print(live.words, style="green" if live.is_running else "bold red", soft_wrap=True)
        if document is not None:
            console.print(view(document, legend=live.is_running))
            if document.log:
                console.print(f"log {document.log}", soft_wrap=True)
    if live.is_running:
        return 0
    return NOT_RUNNING if live.state == "over" else FAILED
