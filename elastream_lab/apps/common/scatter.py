"""Numbers of tuples enter; places in a pool leave, neighbours far apart, the same each time."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def scattered(numbers: Numbers, size: int) -> npt.NDArray[np.uint64]:
    """A place in 0..size-1 for every number."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(32)) % np.uint64(size)
