"""Fractions and orders by number: the same in every process, and even."""

import subprocess
import sys

import numpy as np

from elastream.workload.counter_hash import fractions, shuffled

# What came out when this was written.
GOLDEN_FRACTIONS = [0.28176129772258496, 0.6524484863740322, 0.7012121095215252, 0.31707250881388327]


def test_fractions_are_the_same_in_every_process_and_version() -> None:
    numbers = np.asarray([0, 1, 2, 10**12])
    assert fractions(numbers, 0).tolist() == GOLDEN_FRACTIONS
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy as np; from elastream.workload.counter_hash import fractions; "
            "print(fractions(np.asarray([0, 1, 2, 10**12]), 7).tolist())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == str(fractions(numbers, 7).tolist())


def test_fractions_are_even_and_salts_have_nothing_in_common() -> None:
    numbers = np.arange(200_000)
    one, two = fractions(numbers, 1), fractions(numbers, 2)
    assert one.min() >= 0
    assert one.max() < 1
    counts = np.histogram(one, 100, (0, 1))[0]
    # Chi-squared with 99 degrees of freedom: mean 99, standard deviation 14.
    assert np.sum((counts - 2000) ** 2 / 2000) < 99 + 6 * 14
    assert abs(np.corrcoef(one, two)[0, 1]) < 6 / np.sqrt(200_000)
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 6 / np.sqrt(200_000)


def test_an_order_has_every_number_once() -> None:
    assert sorted(shuffled(1000, 5)) == list(range(1000))
    assert shuffled(1000, 5).tolist() != shuffled(1000, 6).tolist()
