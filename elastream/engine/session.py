"""A Spark session made for ticks: the settings that bring an empty micro-batch down, each with its reason."""

import os
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from elastream.engine.jars import found_jars
from elastream.engine.noise import filtered_stderr
from elastream.errors import SettingError

TICK_SETTINGS = {
    # Workers fork from a daemon that has imported everything and frozen it.
    "spark.python.daemon.module": "elastream.engine.daemon",
    # Over TCP the task's second small write waits 40 ms for the delayed acknowledgement of the first.
    "spark.python.unix.domain.socket.enabled": "true",
    # The default writes and renames with checksums: 100 ms a batch instead of 15.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A plan of one narrow stage gains nothing from being planned adaptively or compiled.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # As by default, and the logins of Kafka's clients: what Spark's pages do not show.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas",
    "spark.task.maxFailures": "4",
}

NEEDED = ("spark.python.daemon.module",)

_LOGGING = Path(__file__).with_name("log4j2.properties").absolute()


def tick_session(master: str | None, lanes: int, extra: dict[str, str] | None = None) -> SparkSession:
    """A session for a run with this many lanes. In local mode each lane gets a slot, for replicas that wait."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    slots = max(os.cpu_count() or 1, lanes)
    # The number behind the comma lets a task be tried again when its worker dies, which plain local mode does not.
    chosen = master or f"local[{slots},4]"
    if chosen.startswith("local[") and "," not in chosen:
        chosen = chosen.replace("]", ",4]")
    settings = TICK_SETTINGS | {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"}
    if chosen.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if jars := found_jars():
        settings["spark.jars"] = ",".join(map(str, jars))
    conf = SparkConf().setMaster(chosen).setAppName("elastream").setAll(list((settings | (extra or {})).items()))
    if SparkContext._gateway is None:
        writing = filtered_stderr()
        SparkContext(conf=conf, gateway=launch_gateway(conf, {"stderr": writing}))  # type: ignore[no-untyped-call]
        os.close(writing)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def check_session(spark: SparkSession) -> None:
    """A session of the user's own must have the settings without which a tick is many times slower."""
    for name in NEEDED:
        if spark.conf.get(name, None) != TICK_SETTINGS[name]:
            raise SettingError(
                f"spark session: {name} must be {TICK_SETTINGS[name]!r}; build the session with "
                "elastream.session(), or pass elastream.TICK_SETTINGS to its builder"
            )


def slots_of(spark: SparkSession) -> int:
    return int(spark.sparkContext.defaultParallelism)


def cores_of(spark: SparkSession) -> int:
    """How many tasks can compute at once: in local mode slots may be more than cores."""
    slots = slots_of(spark)
    return min(slots, os.cpu_count() or 1) if str(spark.sparkContext.master).startswith("local") else slots
