"""The classifiers of the tweet applications: a number of examples and a seed enter, a trained model leaves.

A model is trained once a process, on texts and accounts generated with a seed of its own: the tweets that flow later
are others.
"""

from collections.abc import Callable
from functools import lru_cache
from random import Random

import numpy as np
import pyarrow as pa

from elastream_lab.apps.common.classify import account_features
from elastream_lab.apps.common.linear_model import LinearModel
from elastream_lab.apps.common.text_model import TextModel
from elastream_lab.apps.common.training import fit_linear, fit_text
from elastream_lab.apps.tweets.accounts import labelled_accounts
from elastream_lab.apps.tweets.parsing import parse_tweets
from elastream_lab.apps.tweets.payload import FIRST_TWEET, author_json, text_json
from elastream_lab.apps.tweets.texts import LabelledText, labelled_texts

EXAMPLES = 6000


@lru_cache(maxsize=1)
def topic_model() -> TextModel:
    return _text_model(1, lambda labelled: labelled.topic)


@lru_cache(maxsize=1)
def kind_model() -> TextModel:
    return _text_model(2, lambda labelled: labelled.kind)


@lru_cache(maxsize=1)
def mood_model() -> TextModel:
    """Only of opinions, for it sees no others; moods are said in fewer words than topics, so it needs more examples."""
    return _text_model(3, lambda labelled: labelled.mood if labelled.kind == "opinion" else None, 2 * EXAMPLES)


@lru_cache(maxsize=1)
def author_model() -> LinearModel:
    accounts, classes = accounts_as_parsed(EXAMPLES, Random(4))
    return fit_linear(account_features(accounts), classes)


def accounts_as_parsed(count: int, random: Random) -> tuple[pa.RecordBatch, list[str]]:
    """Generated accounts in the columns that the parser gives, and the class of each."""
    accounts = labelled_accounts(count, random)
    text = text_json(FIRST_TWEET, "")
    documents = [f"{{{text}{author_json(account)}" for account, _ in accounts]
    raw = pa.RecordBatch.from_pydict({"id": np.arange(count), "raw": documents})
    return parse_tweets(raw), [author for _, author in accounts]


def _text_model(seed: int, label: Callable[[LabelledText], str | None], count: int = EXAMPLES) -> TextModel:
    examples = [(made.text, label(made)) for made in labelled_texts(count, Random(seed))]
    wanted = [(text, name) for text, name in examples if name is not None]
    return fit_text([text for text, _ in wanted], [name for _, name in wanted])
