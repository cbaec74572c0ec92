"""A Spark session made for ticks: the settings that bring an empty micro-batch down, each with its reason."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from elastream.engine.spark.archive import java_options
from elastream.engine.spark.jars import found_jars
from elastream.engine.spark.java import check_java
from elastream.engine.spark.java_errors import java_reason
from elastream.engine.spark.masters import check_master, is_local, is_on_loopback
from elastream.engine.spark.sockets import socket_folder
from elastream.engine.spark.stderr_filter import filtered_stderr
from elastream.errors import RunFailed, SettingError

log = logging.getLogger("elastream.spark")

QUERY_SETTINGS = {
    # The default writes and renames with checksums: 100 ms a batch instead of 15.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A plan of one narrow stage gains nothing from being planned adaptively or compiled.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""Of every query of ours, whatever the session has."""

TICK_SETTINGS = QUERY_SETTINGS | {
    # Workers fork from a daemon that has imported everything and frozen it.
    "spark.python.daemon.module": "elastream.engine.spark.daemon",
    # Over TCP the task's second small write waits 40 ms for the delayed acknowledgement of the first.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # As by default, and the logins of Kafka's clients: what Spark's pages do not show.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas",
    # An executor that dies takes its tasks along; each is tried on another one, this often in a tick.
    "spark.task.maxFailures": "4",
}
"""Of a session that `session()` makes. A session of the user's own works without them; with them, hosts and batches begin sooner.
They must be there when the session is built."""

CLUSTER_SETTINGS = {
    # Where it is known how many executors will come, the first tick waits for most of them.
    "spark.scheduler.minRegisteredResourcesRatio": "0.8",
    # A worker that dies cannot tell why its executor is gone, and a tick waits this long for it to be told; 5 s by default.
    "spark.standalone.executorRemoveDelayOnDisconnection": "1s",
}
"""What a session on a cluster has besides."""

FRAME_SETTINGS = {
    # What a user's DataFrame does to many rows is worth compiling.
    "spark.sql.codegen.wholeStage": "true",
    # Spark's other store keeps all of the state on the heap, and cannot be rescaled.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A commit writes what changed, not the files of the whole store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Besides, for a query with dataframe operators."""

_LOGGING = Path(__file__).with_name("log4j2.properties").absolute()


EDGE_SLOTS = 8
"""Slots of a local session besides those of the hosts, for the jobs of the edges."""


def session(master: str | None = None, extra: dict[str, str] | None = None) -> SparkSession:
    """A session made for Elastream: in this machine's processes, or on `master`; `extra` are more of Spark's settings."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    slots = (os.cpu_count() or 1) + EDGE_SLOTS
    # The number behind the comma lets a task be tried again when its worker dies, which plain local mode does not.
    chosen = chosen_master(master) or f"local[{slots},4]"
    if chosen.startswith("local[") and "," not in chosen:
        chosen = chosen.replace("]", ",4]")
    java = " ".join([f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *java_options()])
    settings = TICK_SETTINGS | {"spark.driver.extraJavaOptions": java}
    if is_local(chosen) or is_on_loopback(chosen):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if is_local(chosen):
        settings["spark.python.unix.domain.socket.dir"] = socket_folder()
    else:
        check_master(chosen)
        settings |= CLUSTER_SETTINGS
    if jars := found_jars():
        settings["spark.jars"] = ",".join(map(str, jars))
    conf = SparkConf().setMaster(chosen).setAppName("elastream").setAll(list((settings | (extra or {})).items()))
    if SparkContext._gateway is None:
        if not is_submitted():
            check_java()
        try:
            conf = _launch(conf, chosen, settings, extra or {})
        except (PySparkException, Py4JError) as error:
            raise RunFailed(f"Spark could not be started: {java_reason(error)}") from error
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _launch(conf: SparkConf, chosen: str, settings: dict[str, str], extra: dict[str, str]) -> SparkConf:
    """Start Java and a context in it; gives the settings that it has."""
    writing = filtered_stderr()
    try:
        # A group of its own: what stops the driver gently (Ctrl-C, timeout, systemd) must not end Spark under it.
        gateway = launch_gateway(conf, {"stderr": writing, "start_new_session": True})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    if is_submitted():
        conf = _as_submitted(gateway, settings).setMaster(chosen).setAll(list(extra.items()))
    _hush_accumulators(SparkContext(conf=conf, gateway=gateway))
    return conf


def _hush_accumulators(context: SparkContext) -> None:
    """Spark's server for accumulators prints a stack when Java goes before it does: what ended Java is said elsewhere."""
    server: Any = context._accumulatorServer
    usual = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            usual(request, client_address)

    server.handle_error = handle_error


def is_submitted() -> bool:
    """True in a driver that spark-submit has started: its Java is there already, and so are Spark's settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_stopped(spark: SparkSession) -> bool:
    """True when nothing can be asked of a session any more: somebody has stopped it, or its Java process is gone."""
    try:
        return spark.sparkContext._jsc is None or bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def chosen_master(asked: str | None) -> str | None:
    """Where a session will run: as asked, as spark-submit was told, or None, which is here."""
    return asked or (os.environ.get("MASTER") if is_submitted() else None)


def _as_submitted(gateway: Any, settings: dict[str, str]) -> SparkConf:
    """What spark-submit was told comes first; it has also seen to the jars."""
    SparkContext._ensure_initialized(gateway=gateway)
    conf = SparkConf()
    for name, value in settings.items():
        if name not in ("spark.jars", "spark.driver.extraJavaOptions"):
            conf.setIfMissing(name, value)
    return conf


def use_session(spark: SparkSession) -> None:
    """Check a session of the user's own, and have its local workers run this Python.

    Without `PYSPARK_PYTHON`, Spark takes the first python3 of the PATH, which may know nothing of this environment.
    """
    if not isinstance(spark, SparkSession):
        # Spark Connect has a class of the same name.
        raise SettingError(
            f"spark session: expected a pyspark.sql.SparkSession, got {type(spark).__module__}.{type(spark).__name__}; "
            "Spark Connect has no SparkContext, which starts hosts: run this where the driver is"
        )
    if is_stopped(spark):
        raise SettingError("spark session: it is stopped; make a new one, or leave spark= out")
    master, conf = str(spark.sparkContext.master), spark.sparkContext.getConf()
    if not is_local(master):
        return
    if "PYSPARK_PYTHON" not in os.environ and conf.get("spark.pyspark.python") is None:
        spark.sparkContext.pythonExec = sys.executable
    if master.startswith("local[") and "," not in master:
        log.warning(
            "spark session: with master %s Spark tries no task again, so a host that dies ends the run; %s replaces it",
            master,
            master.replace("]", ",4]"),
        )


@contextmanager
def settings_of_query(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """A query that is started in this block has these settings; the session keeps its own."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
