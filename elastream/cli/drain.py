"""`elastream drain BASE`: read nothing more, serve all that waits, then stop."""

import argparse

from elastream.cli.driver import add_base_argument, add_timeout_argument
from elastream.cli.stop import end_run
from elastream.engine.operations.requests import Drain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_base_argument(parser)
    add_timeout_argument(parser, "the end of the run", 600.0)
    parser.epilog = "exit code 0: nothing waits and the run is over; 1: no driver runs, the run failed, or it goes on"


def main(args: argparse.Namespace) -> int:
    return end_run(args.base, Drain(), "drain", args.timeout)
