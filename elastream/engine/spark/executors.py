"""Executors come and go: a session enters; how many tasks they can run now, and whether they can do a run's work, leaves."""

import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from elastream.engine.spark.java_errors import java_reason
from elastream.engine.spark.masters import is_local
from elastream.engine.worker.base_id import check_base
from elastream.engine.worker.program import Program, load_program
from elastream.errors import BaseUnusable, ElastreamError, RunFailed, SettingError

FIRST_EXECUTOR_S = 120.0
"""How long a cluster may take to give the first executor: a machine may have to be started for it."""

LOOK_S = 0.3
"""How long a look takes at least, so that each executor takes its own and no other's."""


@dataclass(frozen=True)
class Capacity:
    """What the executors of this moment can do."""

    slots: int
    """Tasks that run at once."""
    cores: int
    """Tasks that compute at once: in local mode slots may be more than cores."""

    def hosts(self, edges: bool) -> int:
        """How many hosts there is room for: one per core, and with edges a slot is left for their jobs."""
        return max(1, min(self.cores, self.slots - edges))


def capacity_of(spark: SparkSession) -> Callable[[], Capacity]:
    """What gives the capacity of now. In local mode that is always the same, and nobody is asked."""
    if _is_local(spark):
        slots = _slots(spark)
        fixed = Capacity(slots, min(slots, os.cpu_count() or 1))
        return lambda: fixed

    def now() -> Capacity:
        # While every executor is gone, ticks are planned for the first one that comes back.
        slots = max(1, _slots(spark))
        return Capacity(slots, slots)

    return now


def await_executor(spark: SparkSession) -> None:
    """Wait for the first one of a cluster; Spark would wait for ever, and not say so."""
    if spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled") == "true":
        # Then the first job brings it.
        return
    until = time.monotonic() + FIRST_EXECUTOR_S
    while not _slots(spark):
        if time.monotonic() > until:
            conf = spark.sparkContext.getConf()
            raise RunFailed(
                f"master {spark.sparkContext.master}: no executor came within {FIRST_EXECUTOR_S:.0f} s; look at the cluster's page "
                f"for a worker with {conf.get('spark.executor.cores', '1')} cores and "
                f"{conf.get('spark.executor.memory', '1g')} of memory free, or ask for less with spark.executor.cores and "
                "spark.executor.memory"
            )
        time.sleep(0.05)


def check_executors(spark: SparkSession, program: Program) -> None:
    """On a cluster, every executor there is must see the base, and the directories that sinks write.

    Spark does not notice when each machine writes a directory of its own: what the driver does not see there is lost.
    """
    if _is_local(spark):
        return
    writers = (sink.writer for sink in program.graph.operators if sink.writer is not None)
    folders = [folder for writer in writers if (folder := writer.local_folder(spark))]
    tokens = [folder / f"_elastream-{uuid.uuid4().hex}" for folder in folders]
    slots, travelling = max(1, _slots(spark)), program.to_bytes()
    try:
        for token in tokens:
            token.parent.mkdir(parents=True, exist_ok=True)
            token.touch()
        found = spark.sparkContext.parallelize(range(slots), slots).map(lambda _: _look(travelling, tokens)).collect()
    except OSError as error:
        raise SettingError(f"sink: {error.filename} cannot be written: {error.strerror}; mend that") from None
    except Exception as error:
        raise SettingError(_without_python(error, spark.sparkContext.pythonExec)) from None
    finally:
        for token in tokens:
            token.unlink(missing_ok=True)
    for problem in found:
        if problem:
            raise BaseUnusable(problem)


def _look(program: bytes, tokens: list[Path]) -> str | None:
    """In a worker: what is wrong here."""
    time.sleep(LOOK_S)
    try:
        known, store = load_program(program)
        check_base(store, known.base_id)
    except ElastreamError as error:
        return str(error)
    for token in tokens:
        if not token.exists():
            return (
                f"sink: machine {socket.gethostname()} does not see the driver's directory {token.parent}; name one that all "
                "machines mount at the same place, or an address such as hdfs://..."
            )
    return None


def _without_python(error: Exception, python: str) -> str:
    said = str(error)
    where = "docs/clusters.md says how an environment gets to every machine"
    if "No module named 'elastream'" in said:
        return f"executors: their Python, {python}, does not have elastream; {where}"
    if "Cannot run program" in said:
        return f"executors: there is no {python} on their machines; set PYSPARK_PYTHON: {where}"
    return f"executors: cannot run Python: {java_reason(error)}; {where}"


def _is_local(spark: SparkSession) -> bool:
    return is_local(str(spark.sparkContext.master))


def _slots(spark: SparkSession) -> int:
    # Spark's public number, defaultParallelism, counts executors that are about to go, and is never below 2.
    context: Any = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
