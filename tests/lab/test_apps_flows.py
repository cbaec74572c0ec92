"""The papers' applications as flows: settings, operators, and every tuple stored once with its classes."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flows import each_once, finish
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from stored import results_of, stored_deliveries

from elastream import Topology, start
from elastream.applications.load import load_app
from elastream.cli.run import sink_summaries
from elastream.engine.spark.jars import CACHE
from elastream.errors import SettingError
from elastream.topology import Kind, Replicas
from elastream.workload import constant
from elastream.workload.replay import Replay
from elastream_lab.apps.common import service
from elastream_lab.apps.dns import app as dns
from elastream_lab.apps.results.database import stored_rows
from elastream_lab.apps.tweets import app as tweets
from elastream_lab.apps.tweets import complex as tweets_complex

APPS = {"tweets": tweets.topology, "tweets-complex": tweets_complex.topology, "dns": dns.topology}


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
    monkeypatch.setattr(time, "sleep", waits.append)
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
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    graph = load_app(name, None)
    operators = {operator.name: operator.replicas for operator in graph.served}
    most = 3 if name == "dns" else 8
    assert len(operators) == (8 if name == "tweets-complex" else 4)
    assert set(operators.values()) == {Replicas(1, most, 1)}
    travelling = [o.source.make if isinstance(o.source, Replay) else o.function for o in graph.operators]
    assert len(cloudpickle.dumps(travelling)) < 3_000_000  # type: ignore[no-untyped-call]
    # Where it was called nothing is left; results are in the cache.
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    (results,) = (tmp_path / "cache" / "results").glob("*.sqlite")
    assert results.name == ("dns.sqlite" if name == "dns" else "tweets.sqlite")
    assert any(str(results) in said for said in sink_summaries(graph))


def by_hand(app: Topology, count: int) -> list[tuple[Any, ...]]:
    """What should be stored: every operator called once, in order, on all tuples."""
    graph = app.build()
    given: dict[str, pa.RecordBatch] = {}
    for operator in graph.operators:
        if isinstance(operator.source, Replay):
            given[operator.name] = operator.source.rows(0, count)
            continue
        batches = [given[edge.source] for edge in graph.edges_into(operator.name)]
        batch = pa.Table.from_batches([b.select(batches[0].schema.names) for b in batches]).combine_chunks()
        if operator.kind is Kind.SINK:
            return list(results_of(graph, operator.name).table.rows(batch.to_batches()[0]))
        assert operator.function is not None
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
    with start(app, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        for operator in app.build().served:
            handle.scale(operator.name, 4 if operator.name == "store" else 2)
        finish(handle)
        assert handle.dead_letters().num_rows == 0
        assert handle.audit().problems == ()
    results = results_of(app.build())
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
