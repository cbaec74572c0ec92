"""`elastream stop BASE`: stop a run. Tuples that wait are kept for the next one."""

import argparse

from elastream.cli.console import plain_console
from elastream.cli.driver import NOT_RUNNING, add_base_argument, add_timeout_argument, await_end, open_base, request
from elastream.engine.operations.requests import Action, Stop


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_base_argument(parser)
    add_timeout_argument(parser, "the end of the run", 60.0)
    parser.epilog = "exit code 0: the run is over; 1: no driver runs, the run failed, or it goes on"


def main(args: argparse.Namespace) -> int:
    return end_run(args.base, Stop(), "stop", args.timeout)


def end_run(base: str, action: Action, command: str, timeout_s: float) -> int:
    """Have a run end, and wait until it has."""
    store, console = open_base(base, command), plain_console()
    document = request(store, action, command, timeout_s)
    if document is None:
        return NOT_RUNNING
    live = await_end(store, document.run, timeout_s)
    if live is None:
        console.print(f"{command}: still running after {timeout_s:g} s; elastream status {base} shows it")
        return NOT_RUNNING
    console.print(live.words)
    return 0 if live.state == "over" else NOT_RUNNING
