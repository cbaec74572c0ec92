"""Options that say what arrives when, for every command that drives replay sources."""

import argparse

from elastream.errors import SettingError
from elastream.workload import Arrivals, parse_workload


def add_workload_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trace",
        metavar="NAME|FILE|SHAPE",
        help="drive the app's replay sources by this, see elastream trace; default: as it says itself",
    )
    parser.add_argument("--speed", type=float, default=1.0, help="compress the trace's time this many times")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the trace's events")
    parser.add_argument("--spike", action="append", default=[], metavar="KEY=N,...", help="see elastream trace")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random; the same seed, the same workload")


def chosen_arrivals(args: argparse.Namespace) -> Arrivals | None:
    """The arrivals that the options describe; None: the application's own."""
    if args.trace is None:
        if args.speed != 1.0 or args.scale != 1.0 or args.spike:
            raise SettingError("--speed, --scale and --spike change a trace; name one with --trace")
        return None
    return parse_workload(args.trace, speed=args.speed, scale=args.scale, spikes=args.spike, seed=args.seed)
