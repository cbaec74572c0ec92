"""Operators that are DataFrames: what Spark makes of their lanes goes on like any tuple, and their state is exactly right."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from flows import each_once, finish, ids_of, numbers, same, wait_for
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from elastream import QueueSettings, Settings, StateSettings, Topology, groupings, sources, start
from elastream.connectors.dataframes import state_rescale
from elastream.connectors.dataframes.checkpoint import Checkpoint
from elastream.errors import RunFailed, SettingError, TopologyError
from elastream.workload import constant

BEGAN = 1_700_000_000
"""When the first tuple of `seconds` happened; each is a second later than the one before."""


def seconds(count: int, keys: int = 10) -> Topology:
    """A source `in` of `count` ids, a second of event time apart, all due at once."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"id": numbers, "key": numbers % keys, "at": pd.to_datetime(numbers + BEGAN, unit="s", utc=True)}

    replay = sources.replay(constant(count / 0.5, 0.5), "id long, key long, at timestamp", make)
    return Topology("test").source("in", replay).topology


def per_minute(frame: DataFrame) -> DataFrame:
    """How many of each key in each minute of event time, ten minutes after: replicas are not all equally far."""
    late = frame.withWatermark("at", "10 minutes")
    counted = late.groupBy(F.window("at", "60 seconds"), "key").agg(
        F.count("*").alias("n"), F.min("_due").alias("_due")
    )
    return counted.select("key", F.col("window.start").alias("minute"), "n", "_due")


PER_MINUTE = "key long, minute timestamp, n long"


def minutes_of(rows: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    """By key and minute, how many; each must be there once."""
    found = Counter[tuple[int, int]]()
    for row in rows:
        place = row["key"], int(row["minute"].timestamp() - BEGAN) // 60
        assert place not in found, f"{place} came twice"
        found[place] = row["n"]
    return found


def expected_minutes(count: int, keys: int = 10) -> Counter[tuple[int, int]]:
    """Those that are over ten minutes before the last second. `BEGAN` is 20 seconds into a minute."""
    whole = Counter((n % keys, (n + BEGAN) // 60 - BEGAN // 60 - 1) for n in range(count))
    watermark = BEGAN + count - 1 - 600
    return Counter({place: n for place, n in whole.items() if (place[1] + 2 + BEGAN // 60) * 60 <= watermark})


def test_projections_pandas_udfs_and_static_joins_flow_like_any_operator(spark: SparkSession, tmp_path: Path) -> None:
    names = spark.createDataFrame([(n, f"name {n}") for n in range(10)], "digit long, name string")

    @pandas_udf("long")  # type: ignore[call-overload, untyped-decorator]
    def squared(values: pd.Series) -> pd.Series:
        return values * values

    def enrich(frame: DataFrame) -> DataFrame:
        joined = frame.withColumn("digit", F.col("id") % 10).join(F.broadcast(names), "digit")
        return joined.select("id", "name", squared("id").alias("square"), "_due").where("id % 3 != 0")

    flow = numbers(3000).batch("before", same, after="in", replicas=2).topology
    flow.dataframe(
        "enrich",
        enrich,
        after="before",
        schema="id long, name string, square long",
        grouping=groupings.fields("id"),
        replicas=(1, 4),
        start=2,
    )
    flow.filter("odd", lambda row: row["id"] % 2, after="enrich", chain=True)
    flow.batch("after", same, after="odd", grouping=groupings.fields("name"), replicas=3).output("out")
    with start(flow, str(tmp_path), spark=spark, policy="psps", td_s=1.0, benchmark_s=0.5) as handle:
        finish(handle, 240)
        rows = handle.output("out").to_pylist()
        audit, totals = handle.audit(), handle.status.totals
    kept = [n for n in range(3000) if n % 3 and n % 2]
    assert Counter((r["id"], r["name"], r["square"]) for r in rows) == Counter(
        (n, f"name {n % 10}", n * n) for n in kept
    )
    assert {name: getattr(totals["enrich"], name) for name in ("received", "processed", "emitted")} == {
        "received": 3000, "processed": 3000, "emitted": 2000,
    }  # fmt: skip
    assert totals["odd"].processed == 2000 and totals["enrich"].busy_s > 0
    assert (audit.entered, audit.finished, audit.problems) == (3000, 3000, ())
    assert not (tmp_path / "checkpoint").exists(), "without state Spark's checkpoint is thrown away"


def test_replicas_change_while_it_flows_and_every_one_serves(spark: SparkSession, tmp_path: Path) -> None:
    flow = numbers(6000).dataframe("work", lambda frame: frame, after="in", replicas=(1, 4)).topology
    flow.output("out", after="work")
    # Short lanes let a few through in a tick, so that there are ticks enough before and after.
    with start(
        flow, str(tmp_path), spark=spark, settings=Settings(queues=QueueSettings(q_size=200)), policy=None
    ) as handle:
        wait_for(lambda: handle.observe(60).operators["work"].processed, 180)
        handle.scale("work", 4)
        wait_for(lambda: handle.observe().operators["work"].replicas == 4, 180)
        finish(handle, 240)
        lanes = handle.observe(600).operators["work"].lanes
        assert ids_of(handle) == each_once(6000)
    assert [lane.processed > 0 for lane in lanes] == [True] * 4
    assert sum(lane.processed for lane in lanes) == 6000


def test_spark_compiles_nothing_anew_once_it_flows(spark: SparkSession, tmp_path: Path) -> None:
    def rate(spark: SparkSession) -> DataFrame:
        return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()

    flow = Topology("test")
    flow.source("in", sources.dataframe(rate, "value long"))
    flow.dataframe("work", lambda frame: frame.selectExpr("value + 1 as value"), after="in").output("out")
    jvm: Any = spark._jvm
    compilations = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount
    ticks: list[int] = []
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        handle.subscribe(lambda tick: ticks.append(compilations()))
        wait_for(lambda: len(ticks) > 15, 180)
        assert handle.observe(60).operators["work"].processed > 0
    assert ticks[5] == ticks[15], f"compilations after each tick: {ticks}"


def test_a_window_comes_once_when_the_watermark_has_passed_it(spark: SparkSession, tmp_path: Path) -> None:
    flow = seconds(4000).dataframe("count", per_minute, after="in", schema=PER_MINUTE, replicas=2).topology
    flow.output("out", after="count")
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle, 240)
        rows = handle.output("out").to_pylist()
        audit = handle.audit()
    assert minutes_of(rows) == expected_minutes(4000)
    assert audit.problems == () and audit.queued == 0


def running_total(frame: DataFrame) -> DataFrame:
    """Per key, the sum of all ids so far."""

    # A class in here travels whole: Spark's workers do not know this module.
    class RunningTotal(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._total = handle.getValueState("total", "total long")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
            total = (self._total.get() or (0,))[0] + sum(int(frame["id"].sum()) for frame in rows)
            self._total.update((total,))
            yield pd.DataFrame({"key": [key[0]], "total": [total]})

        def close(self) -> None:
            pass

    return frame.groupBy("key").transformWithStateInPandas(RunningTotal(), "key long, total long", "Append", "none")


def test_the_state_of_transform_with_state_goes_on_after_a_stop(spark: SparkSession, tmp_path: Path) -> None:
    flow = (
        seconds(3000).dataframe("total", running_total, after="in", schema="key long, total long", replicas=2).topology
    )
    flow.output("out", after="total")
    settings = Settings(queues=QueueSettings(q_size=400))
    with start(flow, str(tmp_path), spark=spark, settings=settings, policy=None) as handle:
        wait_for(lambda: handle.observe(60).operators["total"].processed, 180)
    assert handle.status.totals["total"].processed < 3000
    with start(flow, str(tmp_path), spark=spark, settings=settings, policy=None) as handle:
        finish(handle, 240)
        rows = handle.output("out").to_pylist()
    last = Counter[int]()
    for row in rows:
        last[row["key"]] = max(last[row["key"]], row["total"])
    assert last == Counter({key: sum(range(key, 3000, 10)) for key in range(10)})


def counted(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").count()


def test_counts_without_a_watermark_are_given_whenever_they_change(spark: SparkSession, tmp_path: Path) -> None:
    flow = seconds(2000).dataframe("count", counted, after="in", schema="key long, count long", updates=True).topology
    flow.output("out", after="count")
    with start(
        flow, str(tmp_path), spark=spark, settings=Settings(queues=QueueSettings(q_size=500)), policy=None
    ) as handle:
        finish(handle, 240)
        rows = handle.output("out").to_pylist()
    assert len(rows) > 10
    assert {key: max(row["count"] for row in rows if row["key"] == key) for key in range(10)} == dict.fromkeys(
        range(10), 200
    )


@pytest.mark.parametrize(
    ("function", "how", "message"),
    [
        (
            lambda frame: frame.select("id", F.lit("x").alias("word")),
            {"schema": "id long, size long"},
            r"dataframe 'bad': declared id bigint, size bigint; its function gives id bigint, word string; select or cast",
        ),
        (lambda frame: None, {}, r"dataframe 'bad': expected function\(DataFrame\) -> DataFrame, got None"),
        (lambda frame: frame.sparkSession.range(3), {}, "got a DataFrame that does not come from the one it got"),
        (lambda frame: frame.select("nothing"), {}, "dataframe 'bad': Spark refuses it: .*nothing"),
        (counted, {"schema": "key long, count long"}, "dataframe 'bad': Spark refuses .*watermark"),
        (lambda frame: frame.limit(3), {}, r"dataframe 'bad': limit\(\) would leave tuples unread"),
    ],
    ids=["other columns", "nothing", "another frame", "no such column", "no watermark", "limit"],
)
def test_a_function_that_cannot_be_run_is_refused_at_the_start(
    spark: SparkSession, tmp_path: Path, function: Any, how: dict[str, Any], message: str
) -> None:
    flow = seconds(10).dataframe("bad", function, after="in", **how).output("out")
    with pytest.raises(TopologyError, match=message):
        start(flow, str(tmp_path), spark=spark, policy=None)
    with start(seconds(5).output("out", after="in"), str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle, 240)


def test_what_does_not_go_together_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    two = seconds(10)
    two.dataframe("one", counted, after="in", schema="key long, count long", updates=True).output("a")
    two.dataframe("two", per_minute, after="in", schema=PER_MINUTE).output("b")
    with pytest.raises(TopologyError, match="dataframe 'one': updates=True, but 'two' keep state too"):
        start(two, str(tmp_path / "two"), spark=spark, policy=None)
    sunk = seconds(10).dataframe("work", lambda frame: frame, after="in").topology
    sunk.sink("end", lambda batch, delivery: None, after="work", chain=True)
    with pytest.raises(TopologyError, match="sink 'end': chained behind the dataframe 'work'"):
        sunk.build()


def test_a_function_that_raises_stops_the_run_and_a_mended_one_goes_on_with_every_tuple(
    spark: SparkSession, tmp_path: Path
) -> None:
    @pandas_udf("long")  # type: ignore[call-overload, untyped-decorator]
    def fussy(values: pd.Series) -> pd.Series:
        if (values == 77).any():
            raise ValueError("no 77")
        return values

    def broken(frame: DataFrame) -> DataFrame:
        return frame.withColumn("id", fussy("id"))

    handle = start(
        numbers(500).dataframe("work", broken, after="in", replicas=2).output("out"),
        str(tmp_path),
        spark=spark,
        policy=None,
    )
    with pytest.raises(RunFailed, match=r"tick \d+ failed, nothing of it was applied: .*ValueError: no 77") as failed:
        handle.await_end(240)
    assert "\n" not in str(failed.value)
    mended = numbers(500).dataframe("work", lambda frame: frame, after="in", replicas=2).output("out")
    with start(mended, str(tmp_path), spark=spark, policy=None) as again:
        finish(again, 240)
        assert ids_of(again) == each_once(500)


def test_what_is_too_old_is_dropped_before_spark_sees_it(spark: SparkSession, tmp_path: Path) -> None:
    flow = numbers(1000, seconds=0.1).dataframe("work", lambda frame: frame, after="in").output("out")
    with start(
        flow, str(tmp_path), spark=spark, settings=Settings(queues=QueueSettings(t_out_s=1e-6)), policy=None
    ) as handle:
        finish(handle, 240)
        audit = handle.audit()
    assert (audit.entered, audit.dropped, audit.finished, audit.problems) == (1000, 1000, 0, ())
    assert handle.status.totals["work"].late == 1000


def test_a_base_with_state_keeps_its_branches(spark: SparkSession, tmp_path: Path) -> None:
    flow = seconds(100).dataframe("count", per_minute, after="in", schema=PER_MINUTE).output("out")
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle, 240)
    other = seconds(100).dataframe("tally", per_minute, after="in", schema=PER_MINUTE).output("out")
    with pytest.raises(
        SettingError, match=r"dataframe operators \['count'\], this topology has \['tally'\]; put them back"
    ):
        start(other, str(tmp_path), spark=spark, policy=None)


def two_with_state(count: int) -> Topology:
    flow = seconds(count)
    flow.dataframe("count", per_minute, after="in", schema=PER_MINUTE, replicas=2).output("minutes")
    flow.dataframe("total", running_total, after="in", schema="key long, total long").output("totals")
    return flow


def check_both(handle: Any, count: int) -> None:
    assert minutes_of(handle.output("minutes").to_pylist()) == expected_minutes(count)
    last = Counter[int]()
    for row in handle.output("totals").to_pylist():
        last[row["key"]] = max(last[row["key"]], row["total"])
    assert last == Counter({key: sum(range(key, count, 10)) for key in range(10)})


def test_state_is_rescaled_while_it_flows_taken_back_on_any_doubt_and_at_the_next_start_at_the_latest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, settings = str(tmp_path), Settings(queues=QueueSettings(q_size=300), state=StateSettings(partitions=2))
    with start(two_with_state(6000), base, spark=spark, settings=settings, policy=None) as handle:
        wait_for(lambda: handle.observe(60).operators["total"].processed, 180)
        done = handle.rescale_state("count", 3)
        assert (done.before, done.after, done.problem) == (2, 3, "")
        assert {its.kind for its in done.stores} == {"stateStoreSave", "transformWithStateInPandasExec"}
        assert all(its.is_whole and its.rows_before > 0 for its in done.stores) and done.pause_ms > 0
        with pytest.raises(SettingError, match="'in' keeps no state of Spark's; those that do: count, total"):
            handle.rescale_state("in", 2)

        count = state_rescale.count_state
        monkeypatch.setattr(
            state_rescale,
            "count_state",
            lambda spark, checkpoint, batch: {
                place: (rows + (batch is None), checksum)
                for place, (rows, checksum) in count(spark, checkpoint, batch).items()
            },
        )
        doubted = handle.rescale_state("total", 5)
        assert (doubted.before, doubted.after) == (3, 3)
        assert doubted.problem.startswith("the state of ") and doubted.problem.endswith(" is not the same after it")

        def fail(*_: object) -> None:
            raise OSError("the disk is gone")

        monkeypatch.setattr(Checkpoint, "keep_only", fail)
        failed = r"rescale_state: could neither be ended nor taken back: the disk is gone; mend that, then start again"
        # Once more is no way out: what was noted of the checkpoint would be lost.
        for _ in range(2):
            with pytest.raises(RunFailed, match=failed):
                handle.rescale_state("count", 4)
        with pytest.raises(RunFailed, match=failed):
            handle.await_end(10)
    monkeypatch.undo()
    assert (tmp_path / state_rescale.UNFINISHED).exists()
    with start(two_with_state(6000), base, spark=spark, settings=settings, policy=None) as handle:
        assert not (tmp_path / state_rescale.UNFINISHED).exists()
        assert Checkpoint(spark, f"file://{tmp_path}/checkpoint").partitions(handle.status.batch) == 3
        finish(handle, 240)
        check_both(handle, 6000)
        assert handle.audit().problems == ()


class PauseFirst:
    """A lock for batches that a batch gets only when the query is being paused, and has given it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauser = threading.current_thread()
        self._paused = threading.Event()
        self.waits = threading.Event()

    def __enter__(self) -> None:
        if threading.current_thread() is not self._pauser:
            self.waits.set()
            assert self._paused.wait(60)
        self._lock.acquire()
        if threading.current_thread() is self._pauser:
            self._paused.set()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.timeout(240)
def test_a_batch_that_spark_begins_while_its_query_is_paused_comes_again_and_nobody_waits_for_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    with start(
        two_with_state(3000),
        str(tmp_path),
        spark=spark,
        settings=Settings(queues=QueueSettings(q_size=300)),
        policy=None,
    ) as handle:
        lock = PauseFirst()
        query = handle._run.connected.query
        wait_for(lambda: handle.observe(60).operators["total"].processed, 180)
        query._in_batch = lock
        assert lock.waits.wait(60)
        done = handle.rescale_state("count", 3)
        assert done.problem == "" and all(its.is_whole for its in done.stores)
        finish(handle, 240)
        check_both(handle, 3000)
