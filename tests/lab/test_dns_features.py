"""Names in numbers: how they are taken apart, and what their features are."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream_lab.apps.dns.features import FEATURES
from elastream_lab.apps.dns.model import as_parsed, dns_model, feature_rows


def test_a_name_is_taken_apart() -> None:
    asked = ["WwW.Example.CO.uk.", "google.com", "a.b.c.example.org", "co.uk", "localhost", "two..dots.com", "-a.com"]
    asked += ["x" * 64 + ".com", "ok_under.score.net", "xn--bcher-kva.de", "sp ace.com", ""]
    rows = as_parsed(asked).to_pylist()
    assert [(r["name"], r["labels"], r["tld"], r["domain"], r["label"]) for r in rows[:4]] == [
        ("www.example.co.uk", 4, "uk", "example.co.uk", "example"),
        ("google.com", 2, "com", "google.com", "google"),
        ("a.b.c.example.org", 5, "org", "example.org", "example"),
        ("co.uk", 2, "uk", "co.uk", "co"),
    ]
    assert [r["valid"] for r in rows] == [True] * 4 + [False] * 4 + [True, True, False, False]
    long = ".".join(["abcdefgh"] * 28)
    assert [r["valid"] for r in as_parsed([long + ".a", long + ".co", long + ".c" * 2]).to_pylist()] == [
        False,
        False,
        False,
    ]


def test_features_are_what_they_are_called() -> None:
    rows = feature_rows(as_parsed(["google.com", "a1b2c3.net", "www.rhythms.org", "7777.cn", ""]), dns_model().bigrams)
    by_name = {name: rows[:, place].round(4).tolist() for place, name in enumerate(FEATURES)}
    assert by_name["labels"] == [2, 2, 3, 2, 1]
    assert by_name["length"] == [6, 6, 7, 4, 0]
    assert by_name["digit_share"] == [0, 0.5, 0, 1, 0]
    assert by_name["vowel_share"] == [0.5, round(1 / 6, 4), round(1 / 7, 4), 0, 0]
    assert by_name["entropy"] == [1.9183, 2.585, 2.5216, 0, 0]
    assert by_name["consonant_run"] == [2, 1, 4, 0, 0]
    assert by_name["digit_run"] == [0, 1, 0, 4, 0]
    assert by_name["digit_changes"] == [0, 5, 0, 0, 0]
    # Each pair of letters of an ordinary word is likelier than those of a random one.
    usual, random = feature_rows(as_parsed(["station.com", "xqzvkwj.com"]), dns_model().bigrams)[:, -2]
    assert usual > -4.5 and random < -6.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abeiouxyz0189-é", max_size=20), min_size=1, max_size=8))
def test_a_name_has_the_same_features_alone_and_among_others(labels: list[str]) -> None:
    names = [f"{label}.com" for label in labels]
    together = feature_rows(as_parsed(names), dns_model().bigrams)
    alone = [feature_rows(as_parsed([name]), dns_model().bigrams)[0] for name in names]
    np.testing.assert_allclose(together, np.stack(alone), atol=1e-9)
