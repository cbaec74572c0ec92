"""The papers' applications: what they classify, where their tuples come from, and that each result is stored once."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flows import each_once, finish
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import skip_or_fail
from postgres import PASSWORD, PASSWORD_IN_URL, NoServer, Server, postgres_server
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from elastream import Delivery, Topology, run
from elastream.apps import dns, service, tweets, tweets_complex
from elastream.apps.classify import account_features
from elastream.apps.database import close_connections, results_in, stored_deliveries, stored_rows
from elastream.apps.database_address import parse_address
from elastream.apps.dns_features import FEATURES
from elastream.apps.dns_model import as_parsed, dns_model, feature_rows
from elastream.apps.dns_names import benign_names, generated_names
from elastream.apps.dns_payload import dns_payload
from elastream.apps.linear_model import most_likely
from elastream.apps.load import load_app
from elastream.apps.payload_files import MOST_ENTRIES, read_names
from elastream.apps.results_table import Table
from elastream.apps.sqlite_results import SqliteResults
from elastream.apps.text_model import TextModel
from elastream.apps.tweet_models import accounts_as_parsed, author_model, kind_model, mood_model, topic_model
from elastream.apps.tweet_parsing import PARSED, parse_tweets
from elastream.apps.tweet_payload import tweet_payload
from elastream.apps.tweet_texts import LabelledText, labelled_texts
from elastream.engine.functions import apply
from elastream.errors import OperatorFailed, SettingError
from elastream.topology import DUE, Kind, Operator, OperatorName, Replicas, parse_schema, stored
from elastream.workload import constant

NUMBERS = parse_schema("id long, word string")
APPS = {"tweets": tweets.topology, "tweets-complex": tweets_complex.topology, "dns": dns.topology}


@pytest.fixture(autouse=True)
def no_connection_stays_open() -> Iterator[None]:
    yield
    close_connections()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        with postgres_server() as running:
            yield running
    except NoServer as reason:
        skip_or_fail(str(reason))


# What the classifiers know


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
    code = "import sys, elastream.apps.tweets_complex, elastream.apps.dns; print([m for m in sys.modules if m in %r])"
    done = subprocess.run(
        [sys.executable, "-c", code % ["sklearn", "scipy", "psycopg"]], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# Names in numbers


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


# Where tuples come from


@pytest.mark.parametrize("payload", [tweet_payload, dns_payload])
def test_the_same_number_gives_the_same_tuple(payload: Callable[[], Any]) -> None:
    whole = pa.table(payload()(np.arange(0, 9000)))
    part = pa.table(payload()(np.arange(4321, 4400)))
    assert whole.slice(4321, 79).equals(part)
    assert whole.column("id").to_pylist() == list(range(9000))
    words = "raw" if "raw" in whole.schema.names else "name"
    assert len(set(whole.column(words).to_pylist())) > 3000


@pytest.mark.parametrize("payload", [tweet_payload, dns_payload])
def test_ten_thousand_tuples_are_made_in_well_under_a_tenth_of_a_second(payload: Callable[[], Any]) -> None:
    make, numbers, took = payload(), np.arange(10_000), []
    for _ in range(5):
        began = time.perf_counter()
        make(numbers)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.05


def test_a_tweet_is_a_document_as_the_api_gives_it() -> None:
    document = json.loads(tweet_payload()(np.array([77]))["raw"][0].as_py())
    assert (document["id"], document["id_str"]) == (77, "77")
    assert {"created_at", "text", "user"} <= document.keys()
    wanted = {"screen_name", "followers_count", "friends_count", "statuses_count", "verified", "created_at"}
    assert wanted <= document["user"].keys()


def test_tweets_of_a_file_come_in_its_order_and_again(tmp_path: Path) -> None:
    file = tmp_path / "tweets.tsv"
    texts = ['He said "no" \\ 🥊', "two\u2028lines", "Ringe çıkmadan"]
    file.write_text("created_at\ttext\n" + "".join(f"2017-08-27 00:05:3{n}\t{t}\n" for n, t in enumerate(texts)) + "\n")
    made = tweet_payload(str(file))(np.arange(7))
    parsed = parse_tweets(pa.RecordBatch.from_pydict(made)).to_pylist()
    assert [row["text"] for row in parsed] == [*texts, *texts, texts[0]]
    assert str(parsed[1]["created_at"]) == "2017-08-27 00:05:31+00:00"
    assert len({row["screen_name"] for row in parsed}) > 3


def test_names_of_a_file_are_one_a_line_or_the_column_host(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("one.com\n\ntwo.org \r\nthree.net")
    (tmp_path / "names.csv").write_text("class,host\nlegit,one.com\n\ndga,two.org\n")
    made = dns_payload(str(tmp_path / "names.txt"))(np.arange(5))
    assert made["name"].to_pylist() == ["one.com", "two.org", "three.net", "one.com", "two.org"]
    assert read_names(str(tmp_path / "names.csv")) == ["one.com", "two.org"]


def test_of_a_large_file_a_sample_from_all_its_parts_travels(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("\n".join(f"name{n}.com" for n in range(50_000)))
    sample = read_names(str(file))
    assert len(sample) <= MOST_ENTRIES
    parts = Counter(int(name[4:-4]) // 10_000 for name in sample)
    assert sorted(parts) == [0, 1, 2, 3, 4] and max(parts.values()) - min(parts.values()) <= 1
    file.write_text("\n".join(f"{'x' * 5000}{n}.com" for n in range(2_000)))
    assert sum(map(len, read_names(str(file)))) < 1_100_000


BAD_FILES = [
    (tweets, "tweets.tsv", None, "payload FILE: cannot be read: No such file or directory"),
    (tweets, "tweets.tsv", b"", "payload FILE, line 1: expected the header ('created_at', 'text'), got ('',)"),
    (tweets, "tweets.tsv", b"text\nhello\n", "line 1: expected the header ('created_at', 'text'), got ('text',)"),
    (tweets, "tweets.tsv", b"created_at\ttext\n", "payload FILE, line 1: expected at least one entry, got none"),
    (tweets, "t.tsv", b"created_at\ttext\n2017-08-27 00:05:34\n", "line 2: expected 2 cells with a tab between, got 1"),
    (tweets_complex, "t.tsv", b"created_at\ttext\n\nnoon\thi\n", "line 3: expected a time like 2017-08-27 00:05:34"),
    (
        tweets,
        "t.tsv",
        b"created_at\ttext\n2017-08-27\t\xff\n",
        "payload FILE, line 2: expected UTF-8; convert the file",
    ),
    (dns, "names.txt", None, "payload FILE: cannot be read: No such file or directory"),
    (dns, "names.txt", b"\n\n", "payload FILE, line 1: expected at least one entry, got none"),
    (dns, "names.csv", b"name,class\na.com,dga\n", "payload FILE, line 1: expected a column host, got 'name, class'"),
    (dns, "names.csv", b"host,class\n\na.com\n", "payload FILE, line 3: expected 2 cells, got 1"),
]


@pytest.mark.parametrize(("app", "name", "content", "message"), BAD_FILES)
def test_a_bad_file_is_refused_by_name_and_line(
    app: Any, name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingError) as refused:
        app.topology(payload=str(file), database=str(tmp_path / "x.sqlite"))
    assert message.replace("FILE", str(file)) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_broken_document_fails_only_its_own_tuple() -> None:
    made = tweet_payload()(np.arange(40))
    raw = made["raw"].to_pylist()
    document = json.loads(raw[0])
    broken = {
        3: raw[3][:-5],
        8: "",
        9: json.dumps({**document, "user": None}),
        10: json.dumps({**document, "created_at": "yesterday"}),
        21: json.dumps({**document, "user": {**document["user"], "followers_count": "many"}}),
        22: json.dumps({**document, "user": {**document["user"], "followers_count": 10**30}}),
        30: json.dumps({**document, "text": None}),
        39: json.dumps({key: value for key, value in document.items() if key != "text"}),
    }
    rows = [broken.get(n, text) for n, text in enumerate(raw)]
    times = [n * 10 for n in range(40)]
    batch = pa.RecordBatch.from_pydict(
        {"id": made["id"], "raw": rows, DUE: times}, schema=stored(parse_schema("id long, raw string"))
    )
    operator = Operator(OperatorName("parse"), Kind.BATCH, parse_tweets, PARSED, Replicas(1, 1, 1))
    parsed = apply(operator, batch)
    assert [failure.row["id"] for failure in parsed.failures] == sorted(broken)
    assert parsed.batch.column("id").to_pylist() == [n for n in range(40) if n not in broken]
    assert parsed.batch.column(DUE).cast(pa.int64()).to_pylist() == [n * 10 for n in range(40) if n not in broken]


# How they are served


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"service_ms": -1.0}, "service_ms must be 0 or more, got -1.0"),
        ({"service_ms": float("nan")}, "service_ms must be 0 or more, got nan"),
        ({"grouping": "fields"}, "grouping 'fields': expected one of shuffle, load_balancing"),
        ({"database": ""}, "database: expected a file's path or postgresql://user:password@host:port/name"),
        ({"database": ":memory:"}, "database: expected a file's path or"),
        (
            {"database": "/proc/none/x.sqlite"},
            "database /proc/none/x.sqlite: unable to open database file; name a file",
        ),
    ],
)
@pytest.mark.parametrize("app", APPS.values(), ids=APPS)
def test_a_wrong_setting_is_refused_in_one_line(
    app: Callable[..., Topology], setting: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingError) as refused:
        app(**{"database": str(tmp_path / "x.sqlite"), **setting})
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_added_service_time_is_waited_once_a_batch_and_not_for_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(service.time, "sleep", waits.append)
    batch = pa.RecordBatch.from_pydict({"id": list(range(50))})
    assert service.Served(lambda given: given, 4.0)(batch) is batch
    service.Served(lambda given: given, 0.0)(batch)
    with pytest.raises(ZeroDivisionError):
        service.Served(lambda given: 1 / 0, 4.0)(batch)
    assert waits == [0.2]


@pytest.mark.parametrize("name", APPS)
def test_an_application_is_built_in_and_small_enough_to_travel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = load_app(name, None)
    operators = {operator.name: operator.replicas for operator in graph.served}
    most = 3 if name == "dns" else 8
    assert len(operators) == (8 if name == "tweets-complex" else 4)
    assert set(operators.values()) == {Replicas(1, most, 1)}
    travelling = [o.source.make if o.source else o.function for o in graph.operators]
    assert len(cloudpickle.dumps(travelling)) < 3_000_000  # type: ignore[no-untyped-call]
    assert list(tmp_path.glob("*.sqlite")) == [tmp_path / ("dns.sqlite" if name == "dns" else "tweets.sqlite")]


def by_hand(app: Topology, count: int) -> list[tuple[Any, ...]]:
    """What should be stored: every operator called once, in order, on all tuples."""
    graph = app.build()
    given: dict[str, pa.RecordBatch] = {}
    for operator in graph.operators:
        if operator.source is not None:
            given[operator.name] = operator.source.rows(0, count)
            continue
        batches = [given[edge.source] for edge in graph.edges_into(operator.name)]
        batch = pa.Table.from_batches([b.select(batches[0].schema.names) for b in batches]).combine_chunks()
        if operator.kind is Kind.SINK:
            return list(operator.function.function.table.rows(batch.to_batches()[0]))
        given[operator.name] = operator.function(batch.to_batches()[0])
    raise AssertionError("no sink")


def by_id(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows), key=lambda r: r[0])


@pytest.mark.parametrize("name", APPS)
def test_an_application_stores_every_tuple_once_with_its_classes(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    app = APPS[name](
        constant(600, 2), database=str(tmp_path / "x.sqlite"), grouping="load_balancing", service_ms=0.2, replicas=4
    )
    with run(app, str(tmp_path / "base"), spark=spark) as handle:
        for operator in app.build().served:
            handle.scale(operator.name, 4 if operator.name == "store" else 2)
        finish(handle)
        assert handle.dead_letters().num_rows == 0
        assert handle.audit().problems == ()
    results = app.build()["store"].function.function
    rows = stored_rows(results)
    assert Counter(row[0] for row in rows) == each_once(1200)
    assert by_id(rows) == by_id(by_hand(app, 1200))
    replicas = {delivery.rsplit("-", 2)[1] for delivery in stored_deliveries(results)}
    assert len(replicas) > 1


def test_the_flow_of_the_complex_application_splits_and_joins(tmp_path: Path) -> None:
    rows = by_hand(tweets_complex.topology(constant(1, 1), database=str(tmp_path / "x.sqlite")), 1000)
    branches = Counter((row[3], row[5] is not None, row[6] is not None) for row in rows)
    assert set(branches) == {("news", True, False), ("opinion", False, True)}
    assert min(branches.values()) > 300 and branches.total() == 1000
    assert {row[6] for row in rows} - {None} == {"positive", "negative", "neutral"}


def test_the_verdict_on_a_name_that_breaks_the_rules_is_that_it_does(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("google.com\nkqxvzjwhpftgbd.com\ntwo..dots.com\n")
    rows = by_hand(dns.topology(constant(1, 1), payload=str(file), database=str(tmp_path / "x.sqlite")), 3)
    assert [row[5] for row in rows] == ["legit", "generated", "invalid"]
    assert rows[2][6] == 1.0 and all(0.5 <= row[6] <= 1.0 for row in rows)


# Each result once


def numbers(*ids: int) -> pa.RecordBatch:
    due = [0] * len(ids)
    columns = {"id": list(ids), "word": [f"nul\0{n}" for n in ids], DUE: due}
    return pa.RecordBatch.from_pydict(columns, schema=stored(NUMBERS))


def delivery(number: int) -> Delivery:
    return Delivery(f"base-{number}-store-0-0", "store", 0, number)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "results.sqlite")
    running: Server = request.getfixturevalue("server")
    return running.url


def test_a_repeated_delivery_is_stored_once(database: str) -> None:
    results = results_in(database, "repeated", NUMBERS)
    for number, ids in ((1, (10, 11)), (2, (12,)), (1, (10, 11)), (2, (12,))):
        results(numbers(*ids), delivery(number))
    again = results_in(database, "repeated", NUMBERS)
    again(numbers(12), delivery(2))
    assert sorted(stored_rows(results)) == [(10, "nul�10"), (11, "nul�11"), (12, "nul�12")]
    assert {"base-1-store-0-0", "base-2-store-0-0"} <= set(stored_deliveries(results))


def test_a_delivery_that_fails_leaves_nothing_and_can_be_given_again(tmp_path: Path) -> None:
    results = results_in(str(tmp_path / "x.sqlite"), "cut", NUMBERS)
    store = SqliteResults(results.address)
    with pytest.raises(OperatorFailed, match=r"x\.sqlite: delivery d was not stored: .* 2 columns"):
        store.store(Table("cut", pa.schema([("id", pa.int64())])), "d", [(1,)])
    assert stored_rows(results) == [] and stored_deliveries(results) == []
    assert store.store(results.table, "d", [(1, "one")]) is True
    assert store.store(results.table, "d", [(1, "one")]) is False
    store.close()
    assert stored_rows(results) == [(1, "one")]


def test_eight_writers_at_once_wait_for_each_other(tmp_path: Path) -> None:
    results = results_in(str(tmp_path / "x.sqlite"), "busy", NUMBERS)

    def write(writer: int) -> int:
        """Half of the deliveries are given by two writers."""
        store = SqliteResults(results.address)
        new = 0
        for number in range(30):
            name = f"{number}" if number % 2 else f"{writer}-{number}"
            new += store.store(results.table, name, [(number, str(writer))] * 20)
        store.close()
        return new

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 8 * 15 + 15
    assert Counter(row[0] % 2 for row in stored_rows(results)) == {0: 8 * 15 * 20, 1: 15 * 20}


def test_a_table_with_other_columns_is_refused(database: str) -> None:
    results_in(database, "taken", NUMBERS)
    message = "expected a table taken with columns id, found id, word; name another database, or rename that table"
    with pytest.raises(SettingError, match=message):
        results_in(database, "taken", parse_schema("id long"))


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are notes" * 100)
    with pytest.raises(SettingError, match=r"notes\.txt: file is not a database; name a file"):
        results_in(str(tmp_path / "notes.txt"), "t", NUMBERS)


# PostgreSQL


def test_an_application_stores_in_postgresql(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    app = tweets.topology(constant(400, 1), database=server.url, replicas=3)
    with run(app, str(tmp_path / "base"), spark=spark) as handle:
        handle.scale("store", 3)
        finish(handle)
        assert handle.dead_letters().num_rows == 0
    rows = stored_rows(app.build()["store"].function.function)
    assert Counter(row[0] for row in rows) == each_once(400)
    assert str(next(row[1] for row in rows if row[0] == 1).astimezone(None)) > "2020-03-01"


def test_a_server_that_comes_back_is_found_again(server: Server) -> None:
    results = results_in(server.url, "patient", NUMBERS)
    results(numbers(1), delivery(101))
    server.stop()
    with ThreadPoolExecutor(1) as pool:
        back = pool.submit(lambda: (time.sleep(0.4), server.start()))
        results(numbers(2), delivery(102))
        back.result()
    assert sorted(row[0] for row in stored_rows(results)) == [1, 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: url.replace("/postgres", "/nowhere"), 'database "nowhere" does not exist'),
        (lambda url: url.replace(PASSWORD_IN_URL, "wr0ng%2Fsecret"), "password authentication failed"),
        (lambda url: url.replace(PASSWORD_IN_URL, "wr0ng%zzsecret"), "invalid percent-encoded token"),
        (lambda url: url.replace(PASSWORD_IN_URL, PASSWORD), "write each of : @ / ? # and space as %"),
        (lambda url: url.replace(f":{PASSWORD_IN_URL}@", "@") + "?password=wr0ng", "password authentication failed"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"), "postgresql://elastream@127.0.0.1:1"),
        (lambda url: url.replace("postgresql:", "mysql:"), "expected a file's path or postgresql://"),
        (lambda url: f"host=127.0.0.1 user=elastream password={PASSWORD}", "expected a file's path or postgresql://"),
    ],
)
def test_a_url_that_does_not_work_is_said_in_one_line_without_the_password(
    server: Server, change: Callable[[str], str], reason: str
) -> None:
    with pytest.raises(SettingError) as refused:
        results_in(change(server.url), "t", NUMBERS)
    said = str(refused.value)
    assert reason in said and "\n" not in said
    for secret in (PASSWORD, PASSWORD_IN_URL, "s3cret", "signs", "wr0ng"):
        assert secret not in said


def test_an_address_does_not_show_its_password() -> None:
    address = parse_address("postgresql://me:p%40ss@db.example:5432/results?sslmode=require&sslpassword=hush")
    assert address.shown == "postgresql://me@db.example:5432/results"
    assert repr(address) == "Address(shown='postgresql://me@db.example:5432/results')"
    assert address.hide("p%40ss or p@ss\nor hush") == "*** or *** or ***"


def test_without_psycopg_the_fix_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingError, match=r"needs psycopg; pip install 'elastream\[postgres\]'"):
        results_in("postgresql://me@127.0.0.1/results", "t", NUMBERS)
