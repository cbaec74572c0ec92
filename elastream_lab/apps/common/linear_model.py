"""A linear classifier of numbers: features enter, one row a tuple; the score of every class leaves. Runs in the workers."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearModel:
    classes: tuple[str, ...]
    mean: Floats
    scale: Floats
    weights: Floats
    """One row a feature, one column a class."""
    bias: Floats

    def scores(self, features: Floats) -> Floats:
        scores: Floats = ((features - self.mean) / self.scale) @ self.weights + self.bias
        return scores


def most_likely(classes: tuple[str, ...], scores: Floats) -> tuple[pa.Array, pa.Array]:
    """The best class of every row, and its probability by the softmax of the scores."""
    best = scores.argmax(axis=1)
    rest = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)
    return pa.array(classes).take(pa.array(best)), pa.array(1.0 / rest)
