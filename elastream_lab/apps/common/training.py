"""Train the classifiers, in the driver: labelled examples enter, frozen arrays leave.

scikit-learn is imported here only, and only when something is trained: loading it would cost every worker seconds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elastream_lab.apps.common.linear_model import Floats, LinearModel
from elastream_lab.apps.common.text_model import BUCKETS, TextModel, features

RARE = 8
"""What fewer examples hold than these is left out: training is many times quicker, and no worse."""


def fit_text(texts: Sequence[str], labels: Sequence[str]) -> TextModel:
    """Multinomial logistic regression over hashed words and pairs of words."""
    from scipy.sparse import csr_matrix

    rows, buckets, values = features(pa.array(texts, pa.string()))
    frequent = np.bincount(buckets, minlength=BUCKETS) >= RARE
    examples = csr_matrix((values, (rows, buckets)), shape=(len(texts), BUCKETS))
    classes, found, bias = _fit(examples[:, frequent], labels, c=3.0)
    weights = np.zeros((BUCKETS, len(classes)), np.float32)
    weights[frequent] = found
    return TextModel(classes, weights, bias)


def fit_linear(examples: Floats, labels: Sequence[str]) -> LinearModel:
    """Multinomial logistic regression over features brought to one scale."""
    mean, scale = examples.mean(axis=0), examples.std(axis=0)
    # A feature that is the same everywhere says nothing, and has no scale.
    scale = np.where(scale > 0, scale, 1.0)
    classes, weights, bias = _fit((examples - mean) / scale, labels, c=1.0)
    return LinearModel(classes, mean, scale, weights, bias)


def _fit(examples: Any, labels: Sequence[str], c: float) -> tuple[tuple[str, ...], Floats, Floats]:
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=c, max_iter=1000).fit(examples, np.asarray(labels))
    weights, bias = np.asarray(found.coef_, np.float64).T, np.asarray(found.intercept_, np.float64)
    if weights.shape[1] == 1:
        # For two classes there is one column: how much more likely the second is than the first.
        weights, bias = np.hstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    return tuple(str(name) for name in found.classes_), weights, bias
