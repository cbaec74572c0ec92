"""Constants of the engine, shrunk at random for a seed: what is rare in production happens all the time."""

import importlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

CHOICES: dict[str, tuple[float, ...]] = {
    "elastream.rules:MOST_CHANGES": (1024, 1, 3, 10, 40),
    "elastream.rules:LEAST_ROWS": (50_000, 1, 10, 100),
    "elastream.rules:PORTION_KEYS": (20_000, 1, 5),
    "elastream.rules:MOST_STATE_TASKS": (2, 1, 4),
    "elastream.rules:BETWEEN_WHOLES_S": (0.25, 0.0, 0.05),
    "elastream.rules:FIRST_TRY": (64, 1, 5),
    "elastream.rules:FIRST_DELIVERY": (16, 1, 4),
    "elastream.rules:FIRST_INTAKE": (10_000, 7),
    "elastream.rules:PACE_S": (0.02, 0.1, 0.3),
    "elastream.rules:LANE_PACE_S": (0.01, 0.05),
    "elastream.rules:SHARED_S": (0.002, 0.0, 0.1),
    "elastream.rules:DEPTH": (2, 1),
    "elastream.rules:REDIRECT_S": (0.25, 0.05),
    "elastream.rules:LB_MAX": (0.3, 0.02),
    "elastream.lanes.segment_files:ROLL_BYTES": (16 << 20, 1, 2000),
    "elastream.lanes.segment_files:ROLL_S": (2.0, 0.05),
    "elastream.lanes.segment_files:CACHE_BYTES": (64 << 20, 0),
    "elastream.lanes.segment_files:BATCH_BYTES": (1 << 20, 500),
    "elastream.lanes.segment_files:OPEN_FILES": (64, 1),
    "elastream.lanes.ledger:LEAST_BYTES": (4 << 20, 1, 5000),
    "elastream.lanes.ledger:LEAST_OBJECTS": (256, 2, 20),
    "elastream.lanes.cleanup:GRACE_S": (5.0, 0.01, 0.5),
    "elastream.lanes.cleanup:SWEEP_S": (60.0, 0.5),
    "elastream.lanes.lease:LEASE_S": (30.0, 3.0),
    "elastream.state.host_state:MOST_TOGETHER": (100_000, 1),
    "elastream.engine.driver.placement.retirement:PATIENCE_S": (5.0, 0.3),
    "elastream.engine.driver.placement.redirector:SETTLE_S": (1.0, 0.1),
    "elastream.engine.driver.dispatch.suspects:PARTS": (8, 2),
}
"""Module and name, then the value in production and smaller ones."""

Constants = dict[str, float]


def draw_constants(chance: random.Random) -> Constants:
    """Some as in production, the others small."""
    share = chance.choice((0.3, 0.6, 0.9))
    return {name: chance.choice(values) for name, values in CHOICES.items() if chance.random() < share}


@contextmanager
def shrunk(constants: Constants) -> Iterator[None]:
    """Have these values while the block lasts."""
    before = []
    try:
        for place, value in constants.items():
            module_name, _, name = place.partition(":")
            module = importlib.import_module(module_name)
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)
