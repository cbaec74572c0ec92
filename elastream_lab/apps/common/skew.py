"""The exponent of Zipf's law by which the most popular key has a given share."""

import numpy as np

STEEPEST = 8.0
"""With this exponent nearly all keys are the same one."""


def zipf_of_share(count: int, share: float) -> float:
    """The exponent by which the most popular of `count` keys has this share."""
    low, high = 0.0, STEEPEST
    for _ in range(40):
        middle = (low + high) / 2
        alone = 1 / np.sum(np.arange(1.0, count + 1.0) ** -middle)
        low, high = (middle, high) if alone < share else (low, middle)
    return round(low, 3)
