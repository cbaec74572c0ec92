"""Operators that classify: a batch and a trained model enter, the batch with its classes and their probabilities leaves."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream_lab.apps.common.linear_model import Floats, LinearModel, most_likely
from elastream_lab.apps.common.text_model import TextModel


@dataclass(frozen=True)
class ClassifyText:
    """Adds the class of `text` as one column, and how likely it is as a second."""

    model: TextModel
    column: str
    share: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        classes, shares = most_likely(self.model.classes, self.model.scores(batch.column("text")))
        return batch.append_column(self.column, classes).append_column(self.share, shares)


@dataclass(frozen=True)
class ClassifyAuthor:
    """Adds the class of the account, and keeps only what is stored."""

    model: LinearModel
    keep: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        classes, shares = most_likely(self.model.classes, self.model.scores(account_features(batch)))
        return batch.select(list(self.keep)).append_column("author", classes).append_column("author_share", shares)


def account_features(batch: pa.RecordBatch) -> Floats:
    """Reach, habits and age of the account. Counts span six orders of magnitude, so their logarithms count."""
    followers, friends, statuses = (np.log1p(_numbers(batch, name)) for name in ("followers", "friends", "statuses"))
    days = np.maximum(_numbers(batch, "account_days"), 1.0)
    names = batch.column("screen_name")
    digits = np.asarray(pc.count_substring_regex(names, "[0-9]")) / np.maximum(np.asarray(pc.utf8_length(names)), 1)
    return np.stack(
        [
            followers,
            friends,
            followers - friends,
            statuses,
            np.log1p(_numbers(batch, "statuses") / days),
            np.log(days),
            np.asarray(batch.column("verified").cast(pa.float64())),
            digits,
        ],
        axis=1,
    )


def _numbers(batch: pa.RecordBatch, name: str) -> Floats:
    return np.maximum(np.asarray(batch.column(name)).astype(np.float64), 0.0)
