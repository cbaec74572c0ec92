"""`elastream discard BASE OPERATOR...`: drop the tuples that wait for operators of a run."""

import argparse

from elastream.cli.driver import NOT_RUNNING, add_base_argument, add_timeout_argument, open_base, request
from elastream.engine.operations.requests import Discard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_base_argument(parser)
    parser.add_argument("operators", nargs="+", metavar="OPERATOR", help="an operator whose queue is to be dropped")
    add_timeout_argument(parser)
    parser.epilog = "This cannot be undone. exit code 0: done; 1: no driver runs; 2: refused, and nothing was changed"


def main(args: argparse.Namespace) -> int:
    action = Discard(tuple(args.operators))
    return 0 if request(open_base(args.base, "discard"), action, "discard", args.timeout) else NOT_RUNNING
