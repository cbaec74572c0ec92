"""A whole run whose tuples wait in an object store: it flows, it stops, it goes on."""

import pytest
from flows import each_once, finish, ids_of, same
from object_store import BUCKET, SECRET, address
from pyspark.sql import SparkSession

from elastream import Topology, sources, start
from elastream.errors import BaseInUse, SettingError
from elastream.workload import constant


def test_a_run_on_an_object_store_is_stopped_and_goes_on_with_every_tuple(spark: SparkSession, endpoint: str) -> None:
    base = address(endpoint, f"{BUCKET}/run")
    flow = Topology("remote")
    flow.source("in", sources.replay(constant(300, 4)))
    flow.batch("a", same, after="in", replicas=(1, 3), start=2).output("out")
    with start(flow, base, spark=spark, policy=None) as handle:
        with pytest.raises(BaseInUse, match="in use by"):
            start(flow, base, spark=spark, policy=None)
        handle.scale("a", 3)
        handle.await_end(2)
    with start(flow, base, spark=spark, policy=None) as again:
        finish(again)
        assert ids_of(again) == each_once(1200)
        assert again.audit().problems == ()
        assert len(again.observe().operators["a"].lanes) == 3


def test_a_streaming_dataframe_on_a_remote_base_needs_a_place_for_sparks_checkpoint(
    spark: SparkSession, endpoint: str
) -> None:
    rate = sources.dataframe(spark.readStream.format("rate").load().select("value"))
    flow = Topology("remote").source("rate", rate).output("out")
    with pytest.raises(SettingError, match="say where Spark's checkpoint is") as refused:
        start(flow, address(endpoint, f"{BUCKET}/frames"), spark=spark, policy=None)
    assert SECRET not in str(refused.value)
