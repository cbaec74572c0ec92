"""What `elastream simulate` and `elastream bench --plant simulator` both ask for."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elastream.bench.simulator_plant import SimulatorPlant


def add_simulator_arguments(parser: argparse.ArgumentParser) -> None:
    simulated = parser.add_argument_group("the simulator")
    simulated.add_argument(
        "--system", choices=["spark", "storm"], default="spark", help="the engine's turns, or tuple by tuple as Storm"
    )
    simulated.add_argument(
        "--fidelity",
        choices=["ticks", "events"],
        help="all replicas at once, or every tuple by itself: exact, and slow; default: as the suite says, or ticks",
    )
    simulated.add_argument(
        "--cluster",
        metavar="FILE.yaml",
        help="machines, start-up times, failures, skew: docs/suites.md; default: the machine of the profile",
    )
    simulated.add_argument("--profile", metavar="FILE", help="from elastream calibrate; default: the one that ships")


def simulator(args: argparse.Namespace) -> "SimulatorPlant":
    from elastream.bench.simulator_plant import SimulatorPlant
    from elastream.simulator.cluster import load_cluster
    from elastream.simulator.profile import load_profile

    cluster = load_cluster(args.cluster) if args.cluster else None
    return SimulatorPlant(load_profile(args.profile), args.system, cluster=cluster, fidelity=args.fidelity or "ticks")
