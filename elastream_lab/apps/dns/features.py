"""What a name looks like, in numbers: names enter, one row of features each leaves. All of it on arrays of letters.

The features are of the label under which a domain is registered: that is the part an algorithm makes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FEATURES = (
    "labels",
    "length",
    "digit_share",
    "vowel_share",
    "entropy",
    "distinct_share",
    "consonant_run",
    "digit_run",
    "digit_changes",
    "bigram_mean",
    "bigram_total",
)

_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789-"
_EDGE = len(_SIGNS)
"""Stands before the first letter and after the last."""
_CODES = np.full(256, _SIGNS.index("-"), np.int64)
_CODES[[ord(sign) for sign in _SIGNS]] = np.arange(len(_SIGNS))
_IS_VOWEL = np.array([sign in "aeiouy" for sign in _SIGNS])
_IS_DIGIT = np.array([sign.isdigit() for sign in _SIGNS])
_IS_CONSONANT = np.array([sign.isalpha() for sign in _SIGNS]) & ~_IS_VOWEL


@dataclass(frozen=True)
class Letters:
    """All names end to end."""

    codes: Integers
    rows: Integers
    """Which name a letter belongs to."""
    starts: Integers
    lengths: Integers

    def sums(self, values: npt.NDArray[np.generic]) -> Floats:
        """Of one value a letter, by name."""
        sums: Floats = np.bincount(self.rows, values.astype(np.float64), minlength=len(self.lengths)).astype(np.float64)
        return sums

    def longest_run(self, wanted: npt.NDArray[np.bool_]) -> Floats:
        """The most wanted letters in a row, by name."""
        places = np.arange(len(self.codes))
        before = np.where(wanted, -1, places)
        first = self.starts[self.lengths > 0]
        before[first] = np.where(wanted[first], first - 1, first)
        runs = places - np.maximum.accumulate(before)
        longest = np.zeros(len(self.lengths))
        if len(first):
            longest[self.lengths > 0] = np.maximum.reduceat(runs, first)
        return longest


def letters(names: pa.Array) -> Letters:
    words = names.to_pylist()
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    # A letter that is not ASCII becomes one sign, so that the lengths stay right.
    codes = _CODES[np.frombuffer("".join(words).encode("ascii", "replace"), np.uint8)]
    return Letters(codes, np.repeat(np.arange(len(lengths)), lengths), np.cumsum(lengths) - lengths, lengths)


def bigram_table(names: pa.Array) -> Floats:
    """The logarithm of how likely one letter follows another in these names; what was never seen is not impossible."""
    found = letters(names)
    before, after = _pairs(found)
    counts = np.bincount(before * (_EDGE + 1) + after, minlength=(_EDGE + 1) ** 2).reshape(_EDGE + 1, _EDGE + 1) + 0.5
    table: Floats = np.log2(counts / counts.sum(axis=1, keepdims=True))
    return table


def name_features(names: pa.Array, labels: Integers, bigrams: Floats) -> dict[str, Floats]:
    """Columns in the order of `FEATURES`."""
    found = letters(names)
    size = np.maximum(found.lengths, 1).astype(np.float64)
    digits = _IS_DIGIT[found.codes]
    together = found.rows[1:] == found.rows[:-1]
    changes = np.append(together & (digits[1:] != digits[:-1]), np.zeros(min(len(digits), 1), bool))
    counts = np.bincount(found.rows * _EDGE + found.codes, minlength=len(size) * _EDGE).reshape(len(size), _EDGE)
    shares = counts / size[:, None]
    before, after = _pairs(found)
    rows = np.append(found.rows, np.arange(len(size)))
    likelihood = np.bincount(rows, bigrams[before, after], minlength=len(size))
    columns = (
        labels.astype(np.float64),
        found.lengths.astype(np.float64),
        found.sums(digits) / size,
        found.sums(_IS_VOWEL[found.codes]) / size,
        -(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=1),
        (counts > 0).sum(axis=1) / size,
        found.longest_run(_IS_CONSONANT[found.codes]),
        found.longest_run(digits),
        found.sums(changes),
        likelihood / (size + 1),
        likelihood,
    )
    return dict(zip(FEATURES, columns, strict=True))


def _pairs(found: Letters) -> tuple[Integers, Integers]:
    """Each letter with the one before it, then the edge with the last letter of each name."""
    before = np.full(len(found.codes), _EDGE, np.int64)
    inside = found.rows[1:] == found.rows[:-1]
    before[1:][inside] = found.codes[:-1][inside]
    last = np.full(len(found.lengths), _EDGE, np.int64)
    some = found.lengths > 0
    last[some] = found.codes[(found.starts + found.lengths - 1)[some]]
    return np.append(before, last), np.append(found.codes, np.full(len(last), _EDGE))
