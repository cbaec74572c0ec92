"""`elastream scale BASE OPERATOR=N ...`: set replicas, seats, hosts or executors of a run."""

import argparse

from elastream.cli.driver import NOT_RUNNING, add_base_argument, add_timeout_argument, open_base, request
from elastream.engine.operations.requests import Scale
from elastream.errors import SettingError
from elastream.fleet import Level

LEVELS = {f"{level.value}s": level.value for level in Level}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_base_argument(parser)
    parser.add_argument(
        "sizes",
        nargs="+",
        metavar="NAME=N",
        help=f"an operator and its replicas, or a level ({', '.join(LEVELS)}) and its size: enrich=4 hosts=2",
    )
    add_timeout_argument(parser)
    parser.epilog = (
        "With a policy, the policy may change the sizes again; `--policy none` of `elastream run` leaves them to you. "
        "exit code 0: done; 1: no driver runs; 2: refused, and nothing was changed"
    )


def main(args: argparse.Namespace) -> int:
    action = parse_sizes(args.sizes)
    return 0 if request(open_base(args.base, "scale"), action, "scale", args.timeout) else NOT_RUNNING


def parse_sizes(words: list[str]) -> Scale:
    """`enrich=4 hosts=2` as a request. An operator that is named like a level cannot be scaled this way."""
    replicas: dict[str, int] = {}
    levels: dict[str, int] = {}
    for word in words:
        name, _, number = word.rpartition("=")
        if not name or not (number.isascii() and number.isdigit()):
            raise SettingError(f"scale {word!r}: expected OPERATOR=NUMBER, for example enrich=4 or hosts=2")
        if name in replicas or LEVELS.get(name) in levels:
            raise SettingError(f"scale {word!r}: {name} is named twice; name it once")
        if name in LEVELS:
            levels[LEVELS[name]] = int(number)
        else:
            replicas[name] = int(number)
    return Scale(replicas, levels)
