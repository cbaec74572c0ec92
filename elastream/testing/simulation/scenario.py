"""A scenario: everything that a seed decides before the history begins."""

import random
from dataclasses import dataclass

from elastream.testing.simulation.constants import Constants, draw_constants
from elastream.testing.simulation.faults import Fault, draw_faults
from elastream.testing.simulation.workload import Workload, draw_workload


@dataclass(frozen=True)
class Scenario:
    """What a world is made of. The same scenario has the same history."""

    seed: int
    workload: Workload
    faults: tuple[Fault, ...]
    constants: Constants
    appends: bool
    """True: the base is on a disk; else in an object store."""
    hosts: int
    step_s: float
    """How long a host takes between two looks at the clock, on average."""
    storage_s: float
    """How long an operation on a file takes, on average."""
    latency_s: float
    """How long a message takes, on average."""
    turn_s: float
    """What a turn of the driver takes at least: the slower it is, the more it hears at once."""
    cpu_share: float
    interleaved: float
    """The share of works in the middle of which others may run."""


def draw_scenario(seed: int) -> Scenario:
    chance = random.Random(f"scenario {seed}")
    workload = draw_workload(chance)
    seconds = max(feed.tuples / feed.per_s for feed in workload.feeds)
    return Scenario(
        seed,
        workload,
        draw_faults(chance, 1.0 + 1.5 * seconds),
        draw_constants(chance),
        chance.random() < 0.6,
        chance.choice((1, 2, 3, 3, 4)),
        chance.choice((0.0002, 0.002, 0.02, 0.05)),
        chance.choice((0.0001, 0.001, 0.01)),
        chance.choice((0.0001, 0.001, 0.02)),
        chance.choice((0.0001, 0.001, 0.02)),
        chance.choice((0.1, 1.0)),
        chance.choice((0.0, 0.05, 0.3)),
    )
