"""The handle: how a run is watched, scaled, read and stopped."""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.control import ControlLoop, JournalEntry, Observation
from elastream.engine.checkpoints import Checkpoint
from elastream.engine.driver import Driver
from elastream.engine.java_errors import java_reason
from elastream.engine.measure import Tick
from elastream.engine.outputs import read_output, stream_output
from elastream.engine.program import DEAD_LETTERS
from elastream.engine.settings import Settings
from elastream.engine.state_rescale import StateReceipt, rescale
from elastream.engine.streams import Stream
from elastream.engine.writers import Writer
from elastream.errors import ElastreamError, RunFailed, SettingError
from elastream.lanes import Audit, Book, Store, audit
from elastream.topology import DUE, Graph, Kind

MOST_PARTITIONS = 1024
"""More than this is a typing error."""

COMMIT_S = 60.0
"""Spark commits a batch within milliseconds after us; on a slow store it may take longer."""


class Handle:
    """A run in progress. Leaving a `with` block stops it at the next tick boundary."""

    def __init__(
        self,
        graph: Graph,
        base: str,
        driver: Driver,
        query: StreamingQuery,
        spark: SparkSession,
        workdir: str,
        start: Callable[[], StreamingQuery],
        checkpoint: str,
        loop: ControlLoop | None = None,
        timed: dict[str, float] | None = None,
    ) -> None:
        self.graph = graph
        self.base = base
        self.spark = spark
        self.timed = timed or {}
        """Seconds that a tuple took in each operator when they were timed before the stream began."""
        self._driver = driver
        self._query = query
        self._workdir = workdir
        self._closed = False
        self._start = start
        self._checkpoint = checkpoint
        self._restarting = False
        self._rescaling = threading.Lock()
        self._loop = loop
        if loop is not None:
            threading.Thread(target=self._restart_when_asked, name="elastream-restarts", daemon=True).start()

    @property
    def policy(self) -> str:
        """The name of the policy that decides the sizes."""
        return self._loop.policy if self._loop else "by hand"

    @property
    def settings(self) -> Settings:
        return self._driver.settings

    @property
    def td_s(self) -> float:
        """The length of an interval."""
        return self._driver.td_s

    def scale(self, operator: str, replicas: int) -> None:
        """Change the replicas of an operator from the next tick on. A lane that is switched off is drained."""
        self._driver.scale(operator, replicas)

    def rescale_state(self, operator: str, partitions: int) -> StateReceipt:
        """Cut the state of a dataframe operator into another number of partitions; the stream stands still meanwhile.

        One query has one number of partitions: all operators with state change, and are in the receipt. The state is read
        before and after; when that is not the same, or anything fails, it stays as it was, and the receipt says why. When it
        cannot be put back the run stops, and the next start puts it back.
        """
        if operator not in self._driver.stateful:
            names = ", ".join(sorted(self._driver.stateful)) or "none"
            raise SettingError(f"rescale_state: {operator!r} keeps no state of Spark's; those that do: {names}")
        if isinstance(partitions, bool) or not isinstance(partitions, int) or not 1 <= partitions <= MOST_PARTITIONS:
            raise SettingError(f"rescale_state: partitions must be 1..{MOST_PARTITIONS}, got {partitions!r}")
        with self._rescaling:
            return self._rescale_state(partitions)

    def _rescale_state(self, partitions: int) -> StateReceipt:
        if failure := self._failure():
            raise failure
        driver, checkpoint = self._driver, Checkpoint(self.spark, self._checkpoint)
        self._restarting = True
        try:
            driver.request_pause()
            while not driver.paused.wait(0.05):
                if driver.parked.is_set() or not self._query.isActive:
                    raise self._failure() or RunFailed("rescale_state: the run is over; start it again, then rescale")
            tick, began_s = driver.book.tick, driver.book.at_s
            try:
                committed = checkpoint.wait_until_committed(driver.book.batch, COMMIT_S)
                self._stop_query()
                receipt = rescale(self.spark, Store(self.base), checkpoint, driver.book.batch, partitions, committed)
                driver.resume()
                if not driver.parked.is_set():
                    self._query = self._start()
            except Exception as error:
                driver.error = driver.error or error
                self._stop_query()
                raise
        finally:
            self._restarting = False
        while driver.book.tick == tick and self._query.isActive and not driver.parked.is_set():
            time.sleep(0.005)
        return replace(receipt, pause_ms=(time.time() - began_s) * 1e3)

    def observe(self, seconds: float = 1.0) -> Observation:
        """What happened in the last `seconds`."""
        return self._driver.observe(seconds)

    def subscribe(self, listener: Callable[[Tick], None]) -> None:
        """Call this after every committed tick, in the stream's thread: be quick."""
        self._driver.on_tick.append(listener)

    def on_decision(self, listener: Callable[[JournalEntry], None]) -> None:
        """Call this after every interval of the control loop, in the stream's thread: be quick."""
        if self._loop is not None:
            self._loop.on_decision.append(listener)

    @property
    def active(self) -> bool:
        """True while ticks may still come."""
        return not self._closed and not self._driver.parked.is_set() and self._runs

    @property
    def _runs(self) -> bool:
        """Also between the two queries of a restart."""
        return self._restarting or self._driver.restart.is_set() or self._query.isActive

    @property
    def book(self) -> Book:
        """The driver's book; look, do not touch."""
        return self._driver.book

    def await_end(self, timeout_s: float | None = None) -> bool:
        """Wait until every source is exhausted and nothing waits; False when the time ran out first."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while self.active:
            left = 0.2 if until is None else min(0.2, until - time.monotonic())
            if left <= 0:
                return False
            self._driver.parked.wait(left)
        self.stop()
        return True

    def stop(self) -> None:
        """Stop at the next tick boundary. What waits in the lanes waits for the next run with this base."""
        if self._closed:
            return
        self._driver.request_stop()
        while self._runs and (self._restarting or not self._driver.parked.wait(0.05)):
            time.sleep(0.01)
        self._closed = True
        failure = self._failure()
        self._stop_query()
        self._driver.close()
        shutil.rmtree(self._workdir, ignore_errors=True)
        if failure:
            raise failure

    def _stop_query(self) -> None:
        """How it goes down does not matter: everything committed is committed."""
        with contextlib.suppress(PySparkException):
            self._query.stop()

    def _restart_when_asked(self) -> None:
        """For policies whose system can only change its size that way. Everything stops, what is queued is lost."""
        while not self._closed:
            if not self._driver.restart.wait(0.2):
                continue
            self._restarting = True
            try:
                self._stop_query()
                self._driver.lose_queues()
                self._driver.resume()
                if not self._driver.parked.is_set():
                    self._query = self._start()
            except Exception as error:
                self._driver.error = self._driver.error or error
                self._driver.restart.clear()
                return
            finally:
                self._restarting = False

    def _failure(self) -> ElastreamError | None:
        """Why the run ended by itself, if it did."""
        error = self._driver.error
        if isinstance(error, ElastreamError):
            return error
        if self._driver.parked.is_set():
            return None
        reason = error or self._query.exception()
        if reason is None:
            return None
        said = java_reason(reason)
        for operator in self.graph.operators:
            for spec in (operator.source, operator.writer):
                if isinstance(spec, Stream | Writer):
                    said = spec.redact(said)
        return RunFailed(f"tick {self._driver.book.tick + 1} failed, nothing of it was applied: {said}")

    def output(self, name: str) -> pa.Table:
        """The tuples that wait in an output, without their due times."""
        self._check_output(name)
        table = read_output(self.base, name)
        return table.drop_columns([DUE]) if DUE in table.column_names else table

    def stream(self, name: str, reader: str = "default") -> DataFrame:
        """An output as a streaming DataFrame."""
        self._check_output(name)
        return stream_output(self.spark, self.base, name, self.graph[name].schema, reader)

    def dead_letters(self) -> pa.Table:
        """The tuples on which an operator raised: which, where, and the error."""
        return read_output(self.base, DEAD_LETTERS)

    def audit(self) -> Audit:
        return audit(Store(self.base))

    def _check_output(self, name: str) -> None:
        if name not in self.graph or self.graph[name].kind is not Kind.OUTPUT:
            outputs = [o.name for o in self.graph.operators if o.kind is Kind.OUTPUT]
            raise SettingError(f"output {name!r}: not an output of {self.graph.name!r}; there are {outputs or 'none'}")

    def __enter__(self) -> "Handle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
