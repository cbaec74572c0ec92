"""A linear classifier of texts: an array of texts enters, the score of every class leaves.

A text is the bag of its words and of its pairs of neighbouring words ("not good"), each hashed into a bucket. Words that
were never seen in training have no weight. Only numpy and pyarrow are used: this runs in the workers.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

BUCKETS = 2**14

# Python's expressions are compiled once; Arrow's at every call, which for these takes longer than a hundred texts do.
_WORD = re.compile(
    r"https?://\S+|@\w+|[0-9]+"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|[\u2600-\u27bf\U0001f300-\U0001faff]"
)
"""A link, a name, a number, a word, a picture; other signs are not read."""


@dataclass(frozen=True, eq=False)
class TextModel:
    """Weights of every bucket for every class."""

    classes: tuple[str, ...]
    weights: npt.NDArray[np.float32]
    bias: Floats

    def scores(self, texts: pa.Array) -> Floats:
        """One row a text, one column a class."""
        rows, buckets, values = features(texts)
        weights = self.weights[buckets] * values[:, None]
        sums = [np.bincount(rows, weights[:, k], minlength=len(texts)) for k in range(len(self.classes))]
        return np.stack(sums, axis=1) + self.bias


def features(texts: pa.Array) -> tuple[Indices, Indices, npt.NDArray[np.float32]]:
    """Which bucket is in which text, and how much it counts: every text has the same length as a vector."""
    found = [_WORD.findall(text.lower()) for text in texts.to_pylist()]
    words = np.fromiter(map(len, found), np.int64, len(found))
    rows = np.repeat(np.arange(len(found)), words)
    hashes = np.fromiter((_hash(word) for line in found for word in line), np.int64, len(rows))
    together = rows[1:] == rows[:-1]
    pairs = (hashes[:-1] * 31 + hashes[1:])[together]
    rows = np.concatenate([rows, rows[1:][together]])
    sizes = np.bincount(rows, minlength=len(found))
    return rows, np.concatenate([hashes, pairs]) % BUCKETS, (1.0 / np.sqrt(sizes[rows])).astype(np.float32)


@lru_cache(maxsize=2**16)
def _hash(word: str) -> int:
    """The same in every process. Which link, name or number it is says little; that there is one says more."""
    if word[0] == "@" or word[0].isdigit():
        word = word[0] if word[0] == "@" else "0"
    elif word.startswith(("http://", "https://")):
        word = "http"
    elif word in ("never", "hardly", "cannot") or word.endswith(("n't", "n’t")):
        word = "not"
    return crc32(word.encode())
