"""The applications of the Dr-Stream paper: counts and ranks are exact, by any grouping, through rescales and kills."""

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flows import finish, replay_of
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from routes import PATIENT
from spikes import hot_workload
from stored import results_of

from elastream import Topology, start
from elastream.applications.load import load_app
from elastream.capacity.fit import with_more
from elastream.errors import SettingError, TopologyError
from elastream.simulator.application import skew_of
from elastream.simulator.cluster import Cluster
from elastream.simulator.profile import OperatorTimes, load_profile
from elastream.testing import LocalEngine
from elastream.topology import DUE, Kind, Replicas, groupings
from elastream.workload import EQUAL, constant, parse_workload
from elastream_lab.apps.common.service import grouping_of
from elastream_lab.apps.results.database import stored_rows
from elastream_lab.apps.words import top_n, wordcount
from elastream_lab.apps.words.counts import running_sums
from elastream_lab.apps.words.payload import LONGEST, SHORTEST, made_words, sentence_payload, skew_of_text, word_payload
from elastream_lab.apps.words.top_n import Rank, best_of
from elastream_lab.apps.words.words_of_text import words_of
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant

TEXT = [
    "“Well, Prince, so Genoa and Lucca are now just family estates of the Buonapartes.”",
    "But I warn you, if you don't tell me that this means war;",
    "war, WAR — and 'peace' (of 1805/1806). Élan, naïveté: don’t!",
    "the the the war of the worlds",
    "---",
]


def in_table(app: Topology, operator: str) -> dict[str, int]:
    rows = stored_rows(results_of(app.build(), operator))
    assert len({base for base, _, _ in rows}) <= 1
    counts = {word: count for _, word, count in rows}
    assert len(counts) == len(rows)
    return counts


def words_that_came(app: Topology, count: int) -> Counter[str]:
    texts = replay_of(app.build()).rows(0, count).column("raw")
    return Counter(words_of(texts)[0].to_pylist())


def ranked(counts: dict[str, int], top: int) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:top])


# -- what comes


def test_a_word_is_letters_digits_and_apostrophes_in_small_letters() -> None:
    words, places = words_of(pa.array(TEXT))
    found = [
        [word for word, at in zip(words.to_pylist(), places.to_pylist(), strict=True) if at == n] for n in range(5)
    ]
    assert found[1][5:] == ["you", "don't", "tell", "me", "that", "this", "means", "war"]
    assert found[2] == ["war", "war", "and", "peace", "of", "1805", "1806", "élan", "naïveté", "don’t"]
    assert found[4] == []


def test_generated_words_follow_zipfs_law_and_the_seed() -> None:
    arrivals = parse_workload("constant:per_second=100,seconds=10", seed=3)
    payload = word_payload(None, arrivals.keys, zipf=1.2, vocabulary=500)
    words = payload(np.arange(40_000))["raw"].to_pylist()
    shares = [count / 40_000 for _, count in Counter(words).most_common(3)]
    weights = np.arange(1, 501) ** -1.2
    assert shares == pytest.approx(weights[:3] / weights.sum(), abs=0.01)
    assert payload.skew == (500, 1.2)
    assert payload(np.arange(700, 800))["raw"].to_pylist() == words[700:800]
    other = parse_workload("constant:per_second=100,seconds=10", seed=4)
    assert word_payload(None, other.keys, zipf=1.2, vocabulary=500)(np.arange(100))["raw"].to_pylist() != words[:100]


def test_a_vocabulary_has_no_word_twice() -> None:
    words = made_words(25_000)
    assert len(set(words)) == 25_000
    assert words[0] == "caba" and words[24_999].isalpha()


def test_a_sentence_depends_on_its_number_alone() -> None:
    payload = sentence_payload(None, EQUAL, zipf=1.0, vocabulary=300)
    whole = payload(np.arange(2000))["raw"].to_pylist()
    assert payload(np.array([77, 5]))["raw"].to_pylist() == [whole[77], whole[5]]
    assert {len(sentence.split()) for sentence in whole} == set(range(SHORTEST, LONGEST + 1))
    assert payload(np.arange(0))["raw"].to_pylist() == []


def test_a_text_comes_in_its_order_and_again(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("one two\n\n  three\n")
    lines = sentence_payload(str(file), EQUAL, zipf=1.0, vocabulary=10)
    assert lines(np.arange(3))["raw"].to_pylist() == ["one two", "three", "one two"]
    words = word_payload(str(file), EQUAL, zipf=1.0, vocabulary=10)
    assert words(np.arange(4))["raw"].to_pylist() == ["one", "two", "three", "one"]
    assert words.skew == lines.skew == (3, 0.0)


def test_the_skew_of_a_text_is_that_of_its_most_frequent_word() -> None:
    # One of three words is half of the text: 1 / (1 + 2**-s + 3**-s) = 1 / 2.
    words, zipf = skew_of_text(["war war", "and peace"])
    assert words == 3
    assert 2**-zipf + 3**-zipf == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("app", [wordcount, top_n])
def test_hot_keys_of_the_workload_are_words(app: Any, tmp_path: Path) -> None:
    hot = app.topology(hot_workload(share=0.6, hot_keys=1), database=str(tmp_path / "x.sqlite"), zipf=0.0)
    rows = hot.build().sources[0].source.rows(30_000, 34_000).column("raw")
    words = Counter(words_of(rows)[0].to_pylist())
    assert words.most_common(1)[0][1] / words.total() == pytest.approx(0.6, abs=0.03)


# -- what is reckoned


@PATIENT
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9))))
def test_running_sums_are_those_of_each_place(rows: list[tuple[int, int]]) -> None:
    sums, expected = Counter[int](), []
    for place, number in rows:
        sums[place] += number
        expected.append(sums[place])
    places, each = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
    assert running_sums(places, each).tolist() == expected


@PATIENT
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=12), st.integers(1, 4), st.randoms())
def test_a_rank_of_growing_counts_is_exact_in_any_order(works: list[list[str]], top: int, chance: Any) -> None:
    totals, newest, rank, board = Counter[str](), list[tuple[str, int]](), Rank(top), dict[str, int]()
    for work in works:
        for word in work:
            totals[word] += 1
            newest.append((word, totals[word]))
    chance.shuffle(newest)
    best: list[dict[str, Any]] | None = None
    for begin in range(0, len(newest), 3):
        words, counts = zip(*newest[begin : begin + 3], strict=True)
        due = pa.array([0] * len(words)).cast(pa.timestamp("us", "UTC"))
        batch = pa.RecordBatch.from_pydict({"word": words, "count": counts, "part": [5] * len(words), DUE: due})
        state = pa.array([best], pa.list_(pa.struct([("word", pa.string()), ("count", pa.int64())])))
        given, after = rank(batch, pa.RecordBatch.from_arrays([pa.array([5]), state], names=["part", "best"]))
        best = after.column("best")[0].as_py()
        for row in given.to_pylist():
            board[row["word"]] = max(row["count"], board.get(row["word"], 0))
    assert best_of(board, top) == ranked(totals, top)
    assert {row["word"]: row["count"] for row in best or ()} == ranked(totals, top)


# -- flows


@pytest.mark.parametrize("grouping", ["fields", "partial_key", "least_loaded"])
def test_words_are_counted_exactly_while_replicas_change(grouping: str, tmp_path: Path) -> None:
    app = wordcount.topology(
        constant(2000, 1.5), database=str(tmp_path / "x.sqlite"), grouping=grouping, vocabulary=400
    )
    counting = [o.name for o in app.build().served if o.name in ("count", "total")]
    assert counting == (["count"] if grouping == "fields" else ["count", "total"])
    with LocalEngine().start(app, str(tmp_path / "base")) as handle:
        for size in (3, 1, 4, 2):
            for name in ("split", *counting, "store"):
                handle.scale(name, size)
            handle.await_end(0.3)
        finish(handle)
        assert handle.dead_letters().num_rows == 0
        assert handle.audit().problems == ()
        state = {row["word"]: row["total"] for row in handle.state(counting[-1]).to_pylist()}
    expected = words_that_came(app, 3000)
    assert expected.total() > 3000 * SHORTEST
    assert state == expected
    assert in_table(app, "store") == expected


@pytest.mark.parametrize("grouping", ["fields", "shuffle"])
def test_the_top_words_are_exact_while_replicas_change(grouping: str, tmp_path: Path) -> None:
    app = top_n.topology(
        constant(4000, 1.5), database=str(tmp_path / "x.sqlite"), grouping=grouping, vocabulary=800, top=7
    )
    with LocalEngine().start(app, str(tmp_path / "base")) as handle:
        for size in (3, 1, 4, 2):
            for name in ("reader", "count", "rank", "merge"):
                handle.scale(name, size)
            handle.await_end(0.3)
        finish(handle)
        assert handle.audit().problems == ()
    assert in_table(app, "merge") == ranked(words_that_came(app, 6000), 7)


def test_the_top_words_are_exact_after_hosts_were_killed(tmp_path: Path) -> None:
    app = top_n.topology(constant(1500, 4), database=str(tmp_path / "x.sqlite"), vocabulary=800, top=20)
    chance, kills = random.Random(3), 0
    with LocalEngine(processes=True).start(app, str(tmp_path / "base")) as handle:
        for times in range(10**6):
            if handle.await_end(0.2):
                break
            handle.scale(chance.choice(["count", "rank"]), chance.randint(1, 4))
            hosts = handle.status.hosts
            if times % 5 == 4 and kills < 2 and len(hosts) > 1:
                kills += 1
                with suppress(ProcessLookupError):
                    os.kill(hosts[kills % len(hosts)].pid, signal.SIGKILL)
        finish(handle)
        assert handle.audit().problems == ()
    assert kills > 0
    assert in_table(app, "merge") == ranked(words_that_came(app, 6000), 20)


def test_a_new_base_counts_anew_in_the_same_database(tmp_path: Path) -> None:
    database = str(tmp_path / "x.sqlite")
    for base in ("one", "two"):
        app = wordcount.topology(constant(200, 0.5), database=database, vocabulary=50)
        with LocalEngine(virtual=True).start(app, str(tmp_path / base)) as handle:
            finish(handle)
    expected = words_that_came(app, 100)
    rows = stored_rows(results_of(app.build()))
    assert len({base for base, _, _ in rows}) == 2
    assert Counter((word, count) for _, word, count in rows) == Counter(dict.fromkeys(expected.items(), 2))


@pytest.mark.slow
def test_both_applications_agree_with_a_plain_count_of_the_text_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    chance = random.Random(8)
    tokens = [token for line in TEXT for token in line.split()]
    file.write_text("\n".join([*TEXT, *(" ".join(chance.choices(tokens, k=9)) for _ in range(300))]), encoding="utf-8")
    lines = spark.read.text(str(file)).select(
        sql.explode(sql.split(sql.lower("value"), r"[^\p{L}\p{N}'’]+")).alias("piece")
    )
    words = lines.select(sql.btrim("piece", sql.lit("'’")).alias("word")).where("word != ''")
    expected = {row["word"]: row["count"] for row in words.groupBy("word").count().collect()}
    text = file.read_text(encoding="utf-8")
    assert sum(expected.values()) > 2500
    cases: list[tuple[Any, int, str, dict[str, int], dict[str, Any]]] = [
        (wordcount, len(text.splitlines()), "store", expected, {}),
        (top_n, len(text.split()), "merge", ranked(expected, 12), {"top": 12}),
    ]
    for module, count, last, wanted, more in cases:
        app = module.topology(
            constant(count, 1.0), payload=str(file), database=str(tmp_path / f"{last}.sqlite"), **more
        )
        with start(app, str(tmp_path / last), spark=spark, policy=None) as handle:
            handle.scale("count", 3)
            finish(handle)
            assert handle.dead_letters().num_rows == 0
        assert in_table(app, last) == wanted


# -- the simulator


def test_a_simulation_has_the_skew_of_the_application_unless_its_cluster_has_one(tmp_path: Path) -> None:
    graph = top_n.topology(database=str(tmp_path / "x.sqlite"), zipf=1.3, vocabulary=700).build()
    assert skew_of(graph, Cluster()) == (700, 1.3)
    assert skew_of(graph, Cluster(keys=50, zipf=0.4)) == (50, 0.4)


@pytest.mark.parametrize("grouping", [None, "partial_key"])
@pytest.mark.parametrize(("app", "words"), [("wordcount", 7.998), ("top-n", 1.0)])
def test_the_profile_that_ships_knows_the_applications_in_both_shapes(
    app: str, words: float, grouping: str | None
) -> None:
    scenario = Scenario(
        app, app=app, grouping=grouping, workload="constant:per_second=50,seconds=10", policy="static:replicas=4"
    )
    done = SimulatorPlant(load_profile(None)).simulate(scenario)
    processed = {name: sum(sample.processed for sample in its) for name, its in done.record.series.operators.items()}
    assert ("total" in processed) == (grouping is not None)
    assert processed["count"] == pytest.approx(500 * words, rel=0.01)
    assert done.events.queued == 0


def test_a_profile_takes_the_operators_of_another_shape_and_the_shares_that_lead_to_them() -> None:
    plain = {"count": OperatorTimes(1.0, 1.0, 0.0, {"store": 1.0}), "store": OperatorTimes(2.0, 1.0, 0.0)}
    other = {
        "count": OperatorTimes(9.0, 1.0, 0.0, {"total": 0.5}),
        "total": OperatorTimes(3.0, 1.0, 0.0, {"store": 1.0}),
        "store": OperatorTimes(9.0, 1.0, 0.0),
    }
    both = with_more(plain, other)
    assert {name: its.service_s for name, its in both.items()} == {"count": 1.0, "store": 2.0, "total": 3.0}
    assert both["count"].shares == {"store": 1.0, "total": 0.5}


# -- options


@pytest.mark.parametrize(
    ("app", "setting", "message"),
    [
        (wordcount, {"zipf": -1.0}, "zipf must be 0 (all words the same) or more, got -1.0"),
        (top_n, {"vocabulary": 0}, "vocabulary must be 1..100000 words, got 0"),
        (top_n, {"top": 0}, "top must be 1..1000 words, got 0"),
        (wordcount, {"grouping": "all"}, "grouping 'all': expected one of shuffle, load_balancing"),
        (top_n, {"service_ms": -1.0}, "service_ms must be 0 or more, got -1.0"),
        (wordcount, {"payload": "/no/such.txt"}, "payload /no/such.txt: cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(
    app: Any, setting: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingError) as refused:
        app.topology(**{"database": str(tmp_path / "x.sqlite"), **setting})
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_a_grouping_is_found_by_its_name_and_given_the_key() -> None:
    assert grouping_of("fields", "word") == groupings.fields("word")
    assert grouping_of("global", "word") is groupings.global_
    assert grouping_of("redirection", "word") == groupings.redirection("word")
    with pytest.raises(SettingError, match="grouping 'redirection': expected one of shuffle"):
        grouping_of("redirection")


def test_pools_and_first_sizes_are_given_per_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paper = "reader=20,count=20,rank=16,merge=8"
    graph = load_app("top-n", None, {"pool": paper, "start": paper})
    assert [str(o.replicas) for o in graph.served] == ["20 of 1..20", "20 of 1..20", "16 of 1..16", "8 of 1..8"]
    assert [(e.source, str(e.grouping)) for e in graph.edges[1:]] == [
        ("reader", "fields(word)"),
        ("count", "fields(part)"),
        ("rank", "global"),
    ]
    small = load_app("wordcount", None, {"pool": "count=3", "start": 9})
    sizes: dict[str, Replicas] = {o.name: o.replicas for o in small.served}
    assert sizes["count"] == Replicas(1, 3, 3) and sizes["reader"] == Replicas(1, 4, 4)
    assert [o.kind for o in small.served] == [Kind.BATCH, Kind.BATCH, Kind.KEYED_BATCH, Kind.SINK]
    with pytest.raises(SettingError, match="pool 'cuont=3': there is no 'cuont'; did you mean 'count'"):
        load_app("wordcount", None, {"pool": "cuont=3"})
    with pytest.raises(TopologyError, match=r"operator 'count': start must be 1\.\.4, got 9"):
        load_app("wordcount", None, {"start": "count=9"})
