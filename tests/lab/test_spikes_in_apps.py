"""Hot keys in the applications: payloads follow them and change in nothing else."""

import hashlib
import pickle
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from spikes import hot_workload

from elastream.workload import constant, parse_workload
from elastream.workload.replay import Replay
from elastream_lab.apps.dns import app as dns
from elastream_lab.apps.dns.payload import dns_payload
from elastream_lab.apps.tweets import app as tweets
from elastream_lab.apps.tweets import complex as tweets_complex
from elastream_lab.apps.tweets.payload import tweet_payload

# What came out before there were hot keys.
GOLDEN_TWEETS = "997528dec2477563"
GOLDEN_QUERIES = "b51fbffa5892753e"


def _digest(made: dict[str, object]) -> str:
    words = "\n".join(str(column.to_pylist()) for column in made.values())  # type: ignore[attr-defined]
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def test_without_data_spikes_payloads_are_to_the_byte_what_they_were() -> None:
    assert _digest(tweet_payload()(np.arange(5000))) == GOLDEN_TWEETS
    assert _digest(dns_payload()(np.arange(5000))) == GOLDEN_QUERIES


@pytest.mark.parametrize("app", [tweets, tweets_complex, dns])
def test_an_application_follows_the_hot_keys_of_its_workload(
    app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is classified here, so that no model has to be trained.
    for model in ("topic_model", "author_model", "kind_model", "mood_model", "dns_model"):
        monkeypatch.setattr(app, model, lambda: SimpleNamespace(bigrams=None, verdict=None), raising=False)
    arrivals = hot_workload(share=0.6, hot_keys=2)
    calm, hot = (
        app.topology(workload, database=str(tmp_path / "unused.sqlite")).build().sources[0].source
        for workload in (constant(1000, 100), arrivals)
    )
    assert isinstance(calm, Replay)
    assert isinstance(hot, Replay)
    assert hot.arrivals is arrivals
    assert hot.rows(0, 20_000).equals(calm.rows(0, 20_000))
    during, usual = hot.rows(30_000, 40_000), calm.rows(30_000, 40_000)
    name = "name" if app is dns else "raw"
    differ = np.mean(
        [one != other for one, other in zip(during[name].to_pylist(), usual[name].to_pylist(), strict=True)]
    )
    assert differ == pytest.approx(0.6, abs=0.03)
    assert during["id"].equals(usual["id"])


def test_hot_keys_add_little_to_what_travels_to_workers() -> None:
    arrivals = parse_workload("azure_llm_conv", spikes=["random:count=6"], seed=2)
    assert len(arrivals.keys.spells) >= 3
    plain, hot = len(pickle.dumps(tweet_payload())), len(pickle.dumps(tweet_payload(None, arrivals.keys)))
    assert hot - plain < 16_000
