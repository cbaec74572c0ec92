"""The handle of a run on Spark: what can be done with one besides, because Spark is there."""

import threading
import time
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from elastream.connectors.dataframes.state_rescale import StateReceipt, rescale
from elastream.connectors.outputs import stream_output
from elastream.connectors.query.query import EdgeQuery
from elastream.engine.handle import STOP_S, Run, RunHandle
from elastream.errors import RunFailed, SettingError

MOST_PARTITIONS = 1024
"""More than this is a typing error."""

COMMIT_S = 60.0
"""Spark commits a batch within milliseconds after us; on a slow store it may take longer."""

NEXT_BATCH_S = 30.0
"""How long the first batch after a rescale is waited for, when there is something for it to do."""


class Handle(RunHandle):
    """A run in progress on Spark."""

    def __init__(self, run: Run, spark: SparkSession) -> None:
        super().__init__(run)
        self.spark = spark
        self._rescaling = threading.Lock()

    def stream(self, name: str, reader: str = "default") -> DataFrame:
        """An output as a streaming DataFrame."""
        self._check_output(name)
        return stream_output(self.spark, self.base, name, self.graph[name].schema, reader)

    def rescale_state(self, operator: str, partitions: int) -> StateReceipt:
        """Cut the state of a dataframe operator into another number of partitions; the edge query stands still meanwhile.

        One query has one number of partitions: all operators with state change, and are in the receipt. The state is read
        before and after; when that is not the same, or anything fails, it stays as it was, and the receipt says why. When it
        cannot be put back the run stops, and the next start puts it back.
        """
        query: EdgeQuery | None = self._run.connected.query if self._run.connected else None
        stateful = query.frames.stateful if query else frozenset()
        if query is None or operator not in stateful:
            names = ", ".join(sorted(stateful)) or "none"
            raise SettingError(f"rescale_state: {operator!r} keeps no state of Spark's; those that do: {names}")
        if isinstance(partitions, bool) or not isinstance(partitions, int) or not 1 <= partitions <= MOST_PARTITIONS:
            raise SettingError(f"rescale_state: partitions must be 1..{MOST_PARTITIONS}, got {partitions!r}")
        with self._rescaling:
            if failure := self.failure:
                raise failure
            if not self.active:
                raise RunFailed("rescale_state: the run is over; start it again, then rescale")
            return self._rescale_state(query, partitions)

    def _rescale_state(self, query: EdgeQuery, partitions: int) -> StateReceipt:
        began = time.monotonic()
        try:
            committed = query.pause(COMMIT_S)
            batch = self.status.batch
            receipt = rescale(self.spark, self._run.store, query.checkpoint, batch, partitions, committed)
            if self.active:
                query.resume()
        except Exception as error:
            self._run.life.fail(error)
            self._run.life.wait(STOP_S)
            raise
        until = time.monotonic() + NEXT_BATCH_S
        while self.active and self.status.batch == batch and query.has_work and time.monotonic() < until:
            time.sleep(0.005)
        return replace(receipt, pause_ms=(time.monotonic() - began) * 1e3)
