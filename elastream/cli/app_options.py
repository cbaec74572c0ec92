"""The options that an application may take on the command line."""

import argparse
from typing import Any

from elastream.apps.load import PARAMETERS


def add_app_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that are parameters of its function."""
    group = parser.add_argument_group("the application's own options, for those that take them")
    group.add_argument("--payload", metavar="FILE", help="real events instead of generated ones")
    group.add_argument("--database", metavar="FILE|URL", help="where results go: a SQLite file or postgresql://...")
    group.add_argument("--service-ms", type=float, metavar="MS", help="added service time of every operator, a tuple")
    group.add_argument("--grouping", metavar="NAME", help="shuffle, load_balancing or least_loaded")
    group.add_argument("--pool", type=int, metavar="N", help="the most replicas of an operator")


def app_options(args: argparse.Namespace) -> dict[str, Any]:
    """Those that were given, by their names."""
    return {option: getattr(args, option) for option in PARAMETERS if getattr(args, option) is not None}
