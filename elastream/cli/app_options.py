"""The options that an application may take on the command line."""

import argparse
from typing import Any

from elastream.apps.load import OPTIONS
from elastream.apps.sizes import Sizes, read_sizes
from elastream.errors import SettingError


def add_app_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that are parameters of its function."""
    group = parser.add_argument_group("the application's own options, for those that take them")
    group.add_argument("--payload", metavar="FILE", help="real events instead of generated ones")
    group.add_argument(
        "--database",
        metavar="FILE|URL",
        help="where results go: a SQLite file, postgresql://..., redis://... for counts",
    )
    group.add_argument("--service-ms", type=float, metavar="MS", help="added service time of every operator, a tuple")
    group.add_argument(
        "--grouping",
        metavar="NAME",
        help="shuffle, load_balancing, least_loaded; in front of count also fields, partial_key",
    )
    group.add_argument(
        "--pool",
        type=sizes,
        metavar="N|OP=N,...",
        help="the most replicas of an operator, of all or of those that are named",
    )
    group.add_argument("--start", type=sizes, metavar="N|OP=N,...", help="how many a run begins with")
    group.add_argument("--zipf", type=float, metavar="S", help="generated words: the r-th is as frequent as 1 / r**S")
    group.add_argument("--vocabulary", type=int, metavar="N", help="how many different words are generated")
    group.add_argument("--top", type=int, metavar="N", help="how many words top-n keeps")
    group.add_argument("--model", metavar="FILE", help="what is normal for ddos: see elastream learn")
    group.add_argument("--lattice", type=int, metavar="N", help="comd simulates 4 * N**3 atoms")


def app_options(args: argparse.Namespace) -> dict[str, Any]:
    """Those that were given, by their names."""
    return {option: getattr(args, option) for option in OPTIONS if getattr(args, option) is not None}


def sizes(word: str) -> Sizes:
    """For argparse, which says where it stands."""
    try:
        return read_sizes(word)
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
