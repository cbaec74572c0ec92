"""Directories and tables at both ends, by Spark's own readers and writers; what is written is there whole, once."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flows import each_once, finish, numbers, same, wait_for
from parts import skip_or_fail
from postgres import PASSWORD, NoServer, Server, postgres_server
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from elastream import QueueSettings, Settings, Topology, rules, sinks, sources, start
from elastream.connectors.jdbc.key import KeyedTable
from elastream.engine.spark.jars import POSTGRESQL, folder_of
from elastream.errors import RunFailed, TopologyError
from elastream.lanes import Entry, Ledger
from elastream.lanes.sealed import unseal
from elastream.workload import constant

COLUMNS = "id long, name string, seen timestamp"


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_a_directory_goes_through_the_operators_into_another(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rows = spark.range(0, 600).selectExpr(
        "id",
        "if(id % 7 = 0, null, concat('n-', id)) as name",
        "if(id % 11 = 0, null, timestamp_seconds(1700000000 + id)) as seen",
    )
    rows.repartition(12).write.format(kind).option("header", "true").save(str(tmp_path / "in"))
    source = getattr(sources, kind)(str(tmp_path / "in"), COLUMNS, due="seen", files_per_tick=2)
    flow = Topology("files")
    flow.source("in", source)
    flow.map("double", lambda row: {**row, "id": row["id"] * 2}, after="in", replicas=2)
    flow.sink("out", getattr(sinks, kind)(str(tmp_path / "out"), every_s=0), after="double", replicas=2)
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        wait_for(lambda: handle.totals("out").finished == 600)
        handle.stop()
        audit = handle.audit()
    assert (audit.entered, audit.finished, audit.queued, audit.problems) == (600, 600, 0, ())
    found = spark.read.format(kind).option("header", "true").schema(COLUMNS).load(str(tmp_path / "out")).collect()
    assert Counter((r.id, r.name, r.seen and int(r.seen.timestamp())) for r in found) == Counter(
        (n * 2, f"n-{n}" if n % 7 else None, 1700000000 + n if n % 11 else None) for n in range(600)
    )
    assert not [path for path in (tmp_path / "out" / "_writing").glob("*") if path.is_dir()]


def test_lines_that_cannot_be_read_go_to_the_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.json").write_text('{"id": 1}\nnothing\n{"id": 2}\n{"id": [3]}\n')
    flow = Topology("bad")
    flow.source("in", sources.json(str(tmp_path / "in"), "id long"))
    flow.batch("work", same, after="in").output("out")
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        wait_for(lambda: handle.totals("in").entered == 4)
        wait_for(lambda: handle.observe().queued == 0)
        handle.stop()
        assert handle.output("out").column("id").to_pylist() == [1, 2]
        assert [json.loads(row["row"])["text"] for row in handle.dead_letters().to_pylist()] == [
            "nothing",
            '{"id": [3]}',
        ]
        assert handle.audit().problems == ()


@pytest.mark.parametrize("chain", [False, True])
def test_a_date_that_python_cannot_hold_goes_to_the_dead_letters(
    spark: SparkSession, tmp_path: Path, chain: bool
) -> None:
    (tmp_path / "in").mkdir()
    days = ["2026-01-01", "12345-01-01", "2026-01-03"]
    lines = [json.dumps({"id": number, "day": day}) for number, day in enumerate(days)]
    (tmp_path / "in" / "one.json").write_text("\n".join(lines))
    flow = Topology("far")
    flow.source("in", sources.json(str(tmp_path / "in"), "id long, day date"))
    flow.map("work", dict, after="in", chain=chain).output("out")
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        wait_for(lambda: handle.totals("in").entered == 3)
        wait_for(lambda: handle.observe().queued == 0)
        handle.stop()
        assert sorted(handle.output("out").column("id").to_pylist()) == [0, 2]
        letters = handle.dead_letters().to_pylist()
        assert handle.audit().problems == ()
    assert [(letter["operator"], json.loads(letter["row"])) for letter in letters] == [
        ("work", {"id": 1, "day": "12345-01-01"})
    ]
    assert (tmp_path / "base" / "checkpoint").stat().st_mode & 0o777 == 0o700, "its files are Spark's"


def test_a_job_that_is_repeated_leaves_the_directory_as_it_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flow() -> Topology:
        made = numbers(3000).batch("work", same, after="in", replicas=2).topology
        made.sink("out", sinks.parquet(str(tmp_path / "out"), every_s=0), after="work", replicas=2)
        return made

    first = broken_off(flow(), tmp_path / "base", spark, monkeypatch)
    before = {path.name for path in (tmp_path / "out").glob("delivery=*")}
    assert f"delivery={first}" in before, "the job that failed had written"
    with start(flow(), str(tmp_path / "base"), spark=spark, policy=None) as handle:
        finish(handle)
        audit = handle.audit()
    assert (audit.finished, audit.queued, audit.problems) == (3000, 0, ())
    files = list((tmp_path / "out").glob("delivery=*/*.parquet"))
    assert Counter(n for file in files for n in pq.read_table(file).column("id").to_pylist()) == each_once(3000)


def broken_off(flow: Topology, base: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run until a job has written and cannot be committed; gives what it wrote under."""
    commit, wrote, given = Ledger.commit, 0, -1

    def fail(self: Ledger, entry: Entry) -> None:
        nonlocal wrote, given
        wrote += "out" in entry.counts and entry.counts["out"].finished > 0
        if wrote == 3:
            raise RuntimeError("the lights went out")
        given = next((one.entry for one in entry.given if one.operator == "out"), given)
        commit(self, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", fail)
        with (
            pytest.raises(RunFailed, match="the lights went out"),
            start(flow, str(base), spark=spark, policy=None) as handle,
        ):
            finish(handle)
    identity = unseal("base", (base / "base.json").read_bytes(), "base.json")["id"]
    return f"{identity}.out-{given}-out"


def test_a_directory_collects_rows_before_it_writes_and_the_last_ones_do_not_wait(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = Topology("few")
    flow.source("in", sources.replay(constant(400, 6)))
    flow.batch("work", same, after="in").sink("out", sinks.json(str(tmp_path / "out"), every_s=2))
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        finish(handle)
        ticks = handle.status.entry
    written = list((tmp_path / "out").glob("delivery=*"))
    # At once, then every two seconds, and what is left at the end, which may be in several ticks.
    assert 3 <= len(written) <= 10 < ticks
    found = spark.read.json(str(tmp_path / "out")).collect()
    assert Counter(row.id for row in found) == each_once(2400)


def test_full_lanes_do_not_wait_for_the_time_to_write(spark: SparkSession, tmp_path: Path) -> None:
    flow = numbers(2000).batch("work", same, after="in").topology
    flow.sink("out", sinks.json(str(tmp_path / "out"), every_s=3600), after="work")
    with start(
        flow, str(tmp_path / "base"), spark=spark, settings=Settings(queues=QueueSettings(q_size=100)), policy=None
    ) as handle:
        finish(handle)
        assert handle.audit().finished == 2000


def test_any_writer_of_a_dataframe_is_a_sink(spark: SparkSession, tmp_path: Path) -> None:
    deliveries: list[str] = []

    def write(frame: DataFrame, write: sinks.SinkBatch) -> None:
        deliveries.append(write.id)
        frame.write.format("orc").save(str(tmp_path / "out" / f"delivery={write.id}"))

    flow = numbers(700).batch("work", same, after="in", replicas=2).topology
    flow.sink("out", sinks.dataframe(write), after="work", replicas=2)
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        finish(handle)
        latency_s = handle.observe(60).latency_mean_s
    found = spark.read.orc(str(tmp_path / "out"))
    assert found.columns == ["id", "delivery"]
    assert Counter(row.id for row in found.collect()) == each_once(700)
    assert len(deliveries) == len(set(deliveries)) and 0 < latency_s < 60


def test_a_writer_that_fails_stops_the_run_and_nothing_of_its_tick_is_applied(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = numbers(100).batch("work", same, after="in").topology
    flow.sink("out", sinks.json("/proc/nowhere", every_s=0), after="work")
    said = r"sink 'out': Spark could not write delivery \d+: "
    with pytest.raises(RunFailed, match=said), start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
    audit = handle.audit()
    assert audit.entered == audit.queued > 0
    assert (audit.finished, audit.problems) == (0, ())


@pytest.mark.parametrize(
    ("columns", "sink", "said"),
    [
        ("id long, words array<string>", lambda: sinks.csv("/out"), "CSV cannot hold column 'words' of type list"),
        ("delivery long", lambda: sinks.json("/out"), "'delivery' is the column that a directory adds; rename it"),
        ("id long, m map<string,long>", lambda: sinks.jdbc("jdbc:h2:x", "t"), "a table cannot hold column 'm'"),
        ("sequence long", lambda: sinks.jdbc("jdbc:h2:x", "t"), "'sequence' is a column that the table gets from us"),
    ],
)
def test_columns_that_a_sink_cannot_hold_are_named_before_anything_runs(
    spark: SparkSession, tmp_path: Path, columns: str, sink: Callable[[], Any], said: str
) -> None:
    flow = Topology("bad")
    flow.source("in", sources.replay(constant(1, 1), columns, make=lambda numbers: {}))
    flow.batch("work", same, after="in").sink("out", sink())
    with pytest.raises(TopologyError) as error:
        start(flow, str(tmp_path), spark=spark, policy=None)
    assert f"sink 'out': {said}" in str(error.value)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "abfss"])
def test_a_directory_on_an_object_store_is_refused_when_it_is_declared(scheme: str) -> None:
    with pytest.raises(
        TopologyError,
        match=rf"parquet {scheme}://bucket/out: is on an object store, {scheme}://,.* hdfs://, or .*sinks\.dataframe",
    ):
        sinks.parquet(f"{scheme}://bucket/out")
    with pytest.raises(TopologyError, match="json: expected the path of a directory as text, got list"):
        sinks.json(["/a", "/b"])  # type: ignore[arg-type]


@pytest.mark.parametrize("kept", [True, False])
def test_a_table_gets_its_unique_key_or_it_is_said_that_it_lacks_one(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: bool
) -> None:
    """In Derby, which comes with Spark. Its texts can be keys only when they are short."""
    assert spark._jvm is not None
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:{tmp_path / 'derby'};create=true"
    options = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    if kept:
        options["createTableColumnTypes"] = "delivery VARCHAR(200)"
    table = KeyedTable(spark, {"url": url, "dbtable": "results", **options}, ("delivery", "sequence"))

    def once(base: str) -> None:
        sink = sinks.jdbc(url, "results", options=options)
        with start(numbers(10).sink("out", sink, after="in"), str(tmp_path / base), spark=spark, policy=None) as handle:
            finish(handle)

    with caplog.at_level(logging.WARNING, "elastream.edges"):
        once("first")
        assert table.exists() and table.has_key() is kept
        once("second")
    said = [record.getMessage() for record in caplog.records if record.name == "elastream.edges"]
    assert len(said) == (0 if kept else 2)
    for words in said:
        assert words.startswith("sink 'out': the table needs a unique key on the columns that name a row, and ")
        assert f"run {table.statement}" in words and '("delivery", "sequence")' in words
    assert spark.read.format("jdbc").options(url=url, dbtable="results", **options).load().count() == 20


def test_a_directory_on_a_cluster_whose_default_is_an_object_store_is_refused(spark: SparkSession) -> None:
    configuration = spark._jsc.hadoopConfiguration()
    before = configuration.get("fs.defaultFS")
    schema = pa.schema([("id", pa.int64())])
    sinks.json("s3").writer_for(spark, "out", schema)
    configuration.set("fs.defaultFS", "s3a://bucket")
    try:
        sinks.json("file:///out").writer_for(spark, "out", schema)
        with pytest.raises(TopologyError, match="sink 'out': is on an object store, s3a://,"):
            sinks.json("/out").writer_for(spark, "out", schema)
    finally:
        configuration.set("fs.defaultFS", before)


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    if not any(folder_of(POSTGRESQL.folder).glob("*.jar")):
        skip_or_fail("no JDBC driver of PostgreSQL here; run make jdbc, which needs Maven")
    try:
        server = postgres_server()
        with server as running:
            yield running
    except NoServer as error:
        skip_or_fail(str(error))


def test_a_table_has_every_row_once_also_when_a_task_is_lost_after_its_commit(
    spark: SparkSession, database: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"jdbc:postgresql://127.0.0.1:{database.port}/postgres"
    options = {"user": "elastream", "password": PASSWORD}
    # More than the first delivery may have, so that there is a second one, of which nobody looks what was written before.
    total = 2 * rules.FIRST_WRITE + 1000

    def flow() -> Topology:
        made = numbers(total).map("name", _named, after="in", schema="id long, name string", replicas=2).topology
        made.sink("out", sinks.jdbc(url, "results", options=options), after="name", replicas=2)
        return made

    save, saved = DataFrameWriter.save, count()

    def save_and_lose(self: DataFrameWriter) -> None:
        """The first save makes the table, the second writes a delivery; of the third Spark does not hear, and its tasks run again."""
        save(self)
        number = next(saved)
        if number == 0:
            with psycopg.connect(database.url) as connection:
                connection.execute("alter table results add unique (delivery, sequence)")
        if number == 2:
            save(self)

    said = r"sink 'out': Spark could not write delivery \d+: .*duplicate key"
    with monkeypatch.context() as patch:
        patch.setattr(DataFrameWriter, "save", save_and_lose)
        with pytest.raises(RunFailed, match=said), start(flow(), str(tmp_path), spark=spark, policy=None) as handle:
            finish(handle)
    with start(flow(), str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
        audit = handle.audit()
    assert (audit.finished, audit.queued, audit.problems) == (total, 0, ())
    with psycopg.connect(database.url) as connection:
        rows = connection.execute("select id, name from results").fetchall()
    assert Counter(row[0] for row in rows) == each_once(total)
    assert all(row[1] == f"n-{row[0]}" for row in rows)


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "name": f"n-{row['id']}"}


def test_a_password_is_not_in_the_error_of_a_table_that_cannot_be_reached(
    spark: SparkSession, database: Server, tmp_path: Path
) -> None:
    url = f"jdbc:postgresql://127.0.0.1:{database.port}/postgres?password=hunter2"
    sink = sinks.jdbc(url, "results", options={"user": "nobody-we-know"})
    assert "hunter2" not in repr(sink)
    flow = numbers(10).batch("work", same, after="in").sink("out", sink)
    said = "sink 'out': Spark could not write"
    with pytest.raises(RunFailed, match=said) as error, start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
    assert "authentication failed" in str(error.value)
    assert "hunter2" not in str(error.value) and "nobody-we-know" not in str(error.value)
