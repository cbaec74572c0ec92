"""A driver on a cluster, in a process of its own: the shared session of the other tests is a local one.

    python cluster_driver.py MASTER

Orders come as lines of JSON on standard input, answers leave as lines of JSON on standard output:

    {"run": FOLDER}  files of FOLDER/in flow through operators into FOLDER/sink and FOLDER/parquet; now and then is told:
                     {"at_s", "tick", "slots", "finished", "hosts", "machines", "stray"}, and {"failed"} if none can follow; the
                     last three are machines with hosts, those of them on which replicas live, and replicas that live where no host is
    {"total": N}     that many executors are wanted; those that are too many are sent away
    {"lacking": {WHAT: PLACE}}  a run whose executors lack the base, a sink's directory or their Python: {"refused"}
    {"end": COUNT}   when so many tuples have arrived the run stops, and is told as {"ended": [...]}
"""

import json
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flows import files_by_delivery, ids_in, same, tally, wait_for
from pyspark.sql import SparkSession

from elastream import Handle, Topology, groupings, sinks, sources, start
from elastream.engine import session
from elastream.errors import ElastreamError
from elastream.workload import constant

_TELLING = threading.Lock()


def tell(**answer: Any) -> None:
    with _TELLING:
        print(json.dumps(answer), flush=True)


def topology(folder: Path) -> Topology:
    """Rows of a streaming DataFrame, operators, one with state of Spark's, a sink of our own and one that Spark writes."""
    files = str(folder / "in")
    flow = Topology("clustered")
    flow.source(
        "in",
        sources.dataframe(
            lambda spark: spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(files),
            schema="id long",
        ),
    )
    flow.batch("a", same, after="in", replicas=3)
    flow.map("b", lambda row: row, after="a", grouping=groupings.redirection("id"), replicas=3)
    flow.dataframe("tally", tally, after="a", schema="digit long, count long", updates=True, replicas=2)
    flow.output("tallies", after="tally")
    flow.sink("end", files_by_delivery(folder / "sink"), after="b", replicas=3)
    flow.sink("files", sinks.parquet(str(folder / "parquet"), every_s=0), after="b", replicas=2)
    return flow


def start_and_watch(spark: SparkSession, folder: Path) -> Handle:
    handle = start(topology(folder), str(folder / "base"), spark=spark, policy="dr-stream", td_s=1.0, benchmark_s=0)

    def tell_of_it() -> None:
        while handle.active:
            seen = handle.observe()
            hosts = {host.host: host.machine for host in seen.hosts}
            homes = [hosts.get(lane.host, "nowhere") for o in seen.scalable() for lane in o.lanes if lane.host >= 0]
            tell(
                at_s=time.monotonic(),
                tick=handle.status.entry,
                slots=seen.slots,
                finished=len(ids_in(folder / "sink")),
                hosts=len(set(hosts.values())),
                machines=len(set(homes)),
                stray=homes.count("nowhere"),
            )
            time.sleep(0.3)
        if failure := handle.failure:
            tell(failed=str(failure))

    threading.Thread(target=tell_of_it, daemon=True).start()
    return handle


def set_executors(spark: SparkSession, total: int) -> None:
    """As whoever sizes the cluster would: ask for so many, and send away those that are too many."""
    context: Any = spark.sparkContext._jsc.sc()
    to_scala: Any = spark._jvm.org.apache.spark.api.python.PythonUtils  # type: ignore[union-attr]
    ids = sorted(context.getExecutorIds().mkString(" ").split(), key=int)
    if ids[total:]:
        context.killExecutors(to_scala.toSeq(ids[total:]))
    # After the others have gone: sending one away lowers what is wanted by one.
    context.requestTotalExecutors(total, 0, to_scala.toScalaMap({}))


def refusal(spark: SparkSession, folder: Path, base: str | None = None, sink: str = "", python: str = "") -> str:
    """Why a run is refused that lacks one of these."""
    usual, spark.sparkContext.pythonExec = spark.sparkContext.pythonExec, python or spark.sparkContext.pythonExec
    flow = Topology("lacking")
    flow.source("in", sources.replay(constant(10, 1)))
    flow.sink("end", sinks.parquet(sink or str(folder / "out")), after="in")
    try:
        start(flow, (base or None) if base is not None else str(folder / "base"), spark=spark, policy=None)
    except ElastreamError as error:
        return str(error)
    finally:
        spark.sparkContext.pythonExec = usual
    return "not refused"


def main() -> None:
    spark = session(sys.argv[1], {"spark.cores.max": "3"})
    folder, handle = Path(), None
    for line in sys.stdin:
        order = json.loads(line)
        if "run" in order:
            folder = Path(order["run"])
            handle = start_and_watch(spark, folder)
        elif "total" in order:
            set_executors(spark, order["total"])
        elif "lacking" in order:
            with TemporaryDirectory() as place:
                tell(refused=refusal(spark, Path(place), **order["lacking"]))
        else:
            assert handle is not None
            wait_for(lambda: len(ids_in(folder / "sink")) == order["end"] or not handle.active, 120)  # noqa: B023
            for name in ("files", "tally"):
                wait_for(lambda: not handle.status.queued.get(name) or not handle.active)  # noqa: B023
            handle.stop()
            found = handle.audit()
            tell(ended=[found.entered, found.finished, found.dropped, found.queued, found.duplicates, found.problems])
    spark.stop()


if __name__ == "__main__":
    main()
