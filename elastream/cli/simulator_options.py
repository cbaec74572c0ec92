"""Options of the simulator, for every command that simulates."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elastream.extensions import SYSTEMS, installed

if TYPE_CHECKING:
    from elastream.simulator.application import MakeSystem
    from elastream.simulator.cluster import Cluster
    from elastream.simulator.profile import Profile


@dataclass(frozen=True)
class SimulatorOptions:
    """The machine and the cluster that are simulated."""

    profile: "Profile"
    cluster: "Cluster | None"
    make_system: "MakeSystem"


def add_simulator_arguments(parser: argparse.ArgumentParser) -> None:
    simulated = parser.add_argument_group("the simulator")
    simulated.add_argument(
        "--cluster",
        metavar="FILE.yaml",
        help="machines, start-up times, failures, skew: docs/suites.md; default: the machine of the profile",
    )
    simulated.add_argument(
        "--system",
        default="spark",
        metavar="NAME",
        help=f"what is simulated: spark (default), {', '.join(sorted(installed(SYSTEMS)))}",
    )
    simulated.add_argument("--profile", metavar="FILE", help="from elastream calibrate; default: the one that ships")


def simulator_options(args: argparse.Namespace) -> SimulatorOptions:
    """Read the files that the options name."""
    from elastream.simulator.application import system_named
    from elastream.simulator.cluster import load_cluster
    from elastream.simulator.profile import load_profile

    cluster = load_cluster(args.cluster) if args.cluster else None
    return SimulatorOptions(load_profile(args.profile), cluster, system_named(args.system))
