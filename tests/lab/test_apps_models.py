"""What the classifiers of the papers' applications know of texts, authors and names never seen."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from elastream_lab.apps.common.classify import account_features
from elastream_lab.apps.common.linear_model import most_likely
from elastream_lab.apps.common.text_model import TextModel
from elastream_lab.apps.dns.model import as_parsed, dns_model, feature_rows
from elastream_lab.apps.dns.names import benign_names, generated_names
from elastream_lab.apps.tweets.models import accounts_as_parsed, author_model, kind_model, mood_model, topic_model
from elastream_lab.apps.tweets.texts import LabelledText, labelled_texts


def right(found: pa.Array, truth: list[str]) -> tuple[float, float]:
    """The share that is right, and the share that saying the most frequent class each time would have right."""
    share = sum(a == b for a, b in zip(found.to_pylist(), truth, strict=True)) / len(truth)
    return share, Counter(truth).most_common(1)[0][1] / len(truth)


@pytest.mark.parametrize(
    ("model", "label", "expected"),
    [
        (topic_model, lambda made: made.topic, 0.88),
        (kind_model, lambda made: made.kind, 0.94),
        (mood_model, lambda made: made.mood if made.kind == "opinion" else None, 0.86),
    ],
    ids=["topic", "kind", "mood"],
)
def test_texts_that_were_never_seen_are_classified(
    model: Callable[[], TextModel], label: Callable[[LabelledText], str | None], expected: float
) -> None:
    made = [(one.text, name) for one in labelled_texts(3000, Random(1001)) if (name := label(one)) is not None]
    scores = model().scores(pa.array([text for text, _ in made]))
    share, most_frequent = right(most_likely(model().classes, scores)[0], [name for _, name in made])
    assert share >= expected
    assert share >= most_frequent + 0.4


def test_authors_that_were_never_seen_are_classified() -> None:
    accounts, truth = accounts_as_parsed(3000, Random(1002))
    found, likely = most_likely(author_model().classes, author_model().scores(account_features(accounts)))
    share, most_frequent = right(found, truth)
    assert share >= 0.93
    assert share >= most_frequent + 0.35
    assert min(likely.to_pylist()) > 0.25 and max(likely.to_pylist()) <= 1.0


def test_names_that_were_never_seen_are_told_apart() -> None:
    names = benign_names(2000, Random(1003)) + generated_names(2000, Random(1004))
    model = dns_model()
    features = feature_rows(as_parsed(names), model.bigrams)
    found = most_likely(model.verdict.classes, model.verdict.scores(features))[0]
    assert right(found, ["legit"] * 2000 + ["generated"] * 2000)[0] >= 0.95
    known = ["wikipedia.org", "stackoverflow.com", "lemonde.fr", "kqxvzjwhpftgbd.com", "1f3a9c77be0245d8a6.net"]
    judged = most_likely(model.verdict.classes, model.verdict.scores(feature_rows(as_parsed(known), model.bigrams)))[0]
    assert judged.to_pylist() == ["legit", "legit", "legit", "generated", "generated"]


def test_a_denied_word_turns_the_mood() -> None:
    texts = ["honestly great", "honestly not great", "honestly terrible", "i think never terrible"]
    found = most_likely(mood_model().classes, mood_model().scores(pa.array(texts)))[0]
    assert found.to_pylist() == ["positive", "negative", "negative", "positive"]


def test_a_text_is_scored_the_same_alone_and_among_others_even_when_it_is_empty() -> None:
    texts = ["", "  ", "#Goal!! 2:1 @you https://t.co/x", "🎉", "Vaccine\u2028doses", "ünïcödé"]
    texts += [made.text for made in labelled_texts(300, Random(1005))]
    together = topic_model().scores(pa.array(texts))
    alone = [topic_model().scores(pa.array([text]))[0] for text in texts]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-6)
    assert (together[0] == topic_model().bias).all() and (together[1] == topic_model().bias).all()


def test_workers_do_not_load_scikit_learn() -> None:
    """They unpickle what the operators are made of, so they import these modules."""
    code = "import sys, elastream_lab.apps.tweets.complex, elastream_lab.apps.dns.app; print([m for m in sys.modules if m in %r])"
    done = subprocess.run(
        [sys.executable, "-c", code % ["sklearn", "scipy", "psycopg"]], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
