"""Numbers of tuples enter; fractions that look random leave, the same for a number wherever and whenever it is asked.

No generator with a state would do: a source is read again after a crash, in other batches and in other processes.
"""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def fractions(numbers: Numbers, salt: int) -> Floats:
    """For every number a fraction from 0 to less than 1; another salt gives fractions that have nothing in common."""
    # The top 53 bits are all that a float can hold.
    return (hashes(numbers, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def shuffled(count: int, salt: int) -> Numbers:
    """The numbers from 0 to count - 1 in an order that depends on the salt alone."""
    return np.argsort(hashes(np.arange(count, dtype=np.int64), salt), kind="stable").astype(np.int64)


def hashes(numbers: Numbers, salt: int) -> Words:
    """64 bits for every number: the finishing step of SplitMix64 over number and salt."""
    start = _mixed(np.array([salt % 2**64], np.uint64) + _ODD)
    return _mixed(numbers.astype(np.uint64) * _ODD + start)


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
