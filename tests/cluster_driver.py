"""A driver on a cluster, in a process of its own: the shared session of the other tests is a local one.

    python cluster_driver.py MASTER

Orders come as lines of JSON on standard input, answers leave as lines of JSON on standard output:

    {"run": FOLDER, "master": "local"}  files of FOLDER/in flow through operators into FOLDER/sink and FOLDER/parquet; every
                                        tick is told: {"tick", "slots", "finished"}
    {"total": N}                        that many executors are wanted; those that are too many are removed
    {"end": COUNT}                      when so many tuples have arrived the run stops, and is told as {"ended": [...]}
"""

import json
import sys
import threading
from pathlib import Path
from typing import Any

from flows import files_by_delivery, ids_in, same, wait_for
from pyspark.sql import SparkSession

from elastream import Handle, Topology, groupings, run, sinks, sources
from elastream.engine import tick_session
from elastream.engine.measure import Tick

_TELLING = threading.Lock()


def tell(**answer: Any) -> None:
    with _TELLING:
        print(json.dumps(answer), flush=True)


def topology(folder: Path) -> Topology:
    """Rows of a streaming DataFrame, operators, a sink of our own and one that Spark writes."""
    files = str(folder / "in")
    flow = Topology("clustered").source(
        "in",
        sources.dataframe(
            lambda spark: spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(files),
            schema="id long",
        ),
    )
    flow.batch("a", same, after="in", replicas=3)
    flow.map("b", lambda row: row, after="a", grouping=groupings.fields("id"), replicas=3)
    flow.sink("end", files_by_delivery(folder / "sink"), after="b", replicas=3)
    flow.sink("files", sinks.parquet(str(folder / "parquet"), every_s=0), after="b", replicas=2)
    return flow


def start(spark: SparkSession, folder: Path) -> Handle:
    handle = run(topology(folder), str(folder / "base"), spark=spark)

    def told(tick: Tick) -> None:
        seen = handle.observe()
        tell(tick=tick.number, slots=seen.slots, finished=len(ids_in(folder / "sink")))

    handle.subscribe(told)
    return handle


def set_executors(spark: SparkSession, total: int) -> None:
    """As whoever sizes the cluster would: ask for so many, and send away those that are too many."""
    context: Any = spark.sparkContext._jsc.sc()
    jvm: Any = spark._jvm
    nobody = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.HashMap()).toMap(
        getattr(jvm.scala, "$less$colon$less").refl()
    )
    context.requestTotalExecutors(total, 0, nobody)
    ids = list(jvm.scala.jdk.javaapi.CollectionConverters.asJava(context.getExecutorIds()))
    if len(ids) > total:
        going = jvm.java.util.ArrayList(sorted(ids, key=int)[total:])
        context.killExecutors(jvm.scala.jdk.javaapi.CollectionConverters.asScala(going).toSeq())


def main() -> None:
    spark = tick_session(sys.argv[1], 3)
    folder, handle = Path(), None
    for line in sys.stdin:
        order = json.loads(line)
        if "run" in order:
            folder = Path(order["run"])
            handle = start(spark, folder)
        elif "total" in order:
            set_executors(spark, order["total"])
        else:
            assert handle is not None
            wait_for(lambda: len(ids_in(folder / "sink")) == order["end"] or not handle.active, 120)  # noqa: B023
            wait_for(lambda: not handle.book.queued("files") or not handle.active)  # noqa: B023
            handle.stop()
            found = handle.audit()
            tell(ended=[found.entered, found.finished, found.dropped, found.queued, found.duplicates, found.problems])
    spark.stop()


if __name__ == "__main__":
    main()
