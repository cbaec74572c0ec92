"""Options of the laboratory's simulations: those of the product, and the fidelity."""

import argparse
from typing import TYPE_CHECKING

from elastream.cli.simulator_options import add_simulator_arguments as add_product_arguments
from elastream.cli.simulator_options import simulator_options

if TYPE_CHECKING:
    from elastream_lab.bench.suites.simulator_plant import SimulatorPlant


def add_simulator_arguments(parser: argparse.ArgumentParser) -> None:
    add_product_arguments(parser)
    parser.add_argument(
        "--fidelity",
        choices=["ticks", "events"],
        help="all replicas at once, or every tuple by itself: exact, and slow; default: as the suite says, or ticks",
    )


def simulator(args: argparse.Namespace) -> "SimulatorPlant":
    from elastream_lab.bench.suites.simulator_plant import SimulatorPlant

    options = simulator_options(args)
    return SimulatorPlant(options.profile, args.system, cluster=options.cluster, fidelity=args.fidelity or "ticks")
