"""Executors of a Spark application: asked for and given back by the calls that every cluster manager of Spark's has."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from elastream.fleet.machines import MANY, MachineFacts

log = logging.getLogger("elastream.fleet")

LOOK_S = 0.25
"""Between two looks at the executors."""


class SparkMachines:
    """A thread of its own talks to Spark: it may hang when the cluster does, and no turn waits for it."""

    def __init__(self, spark: SparkSession, room: Callable[[], int], *, ours: bool) -> None:
        """`room` says how many hosts fit now. `ours`: False when Spark allocates executors by itself."""
        self._spark = spark
        self._room = room
        self._ours = ours
        self._orders: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._facts = self._count()
        self._closed = threading.Event()
        threading.Thread(target=self._serve, name="elastream-executors", daemon=True).start()

    @property
    def most(self) -> int:
        return MANY if self._ours else len(self._facts.names)

    def look(self) -> MachineFacts:
        return self._facts

    def ask(self, total: int) -> None:
        self._orders.put(lambda: self._request(total))

    def give_back(self, names: tuple[str, ...], total: int) -> None:
        self._orders.put(lambda: self._kill(names, total))

    def close(self) -> None:
        self._closed.set()
        self._orders.put(None)

    # -- the thread

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                order = self._orders.get(timeout=LOOK_S)
            except queue.Empty:
                order = self._look
            if order is not None:
                with contextlib.suppress(PySparkException, Py4JError):
                    order()

    def _look(self) -> None:
        self._facts = self._count()

    def _count(self) -> MachineFacts:
        # Spark's public count of executors has the driver in it, and no names.
        said = str(self._context().getExecutorIds().mkString(","))
        names = tuple(sorted((name for name in said.split(",") if name), key=_age))
        room = self._room()
        return MachineFacts(names, room, max(1, room // max(1, len(names))))

    def _request(self, total: int) -> None:
        jvm: Any = self._spark.sparkContext._jvm
        nowhere = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        if not self._context().requestTotalExecutors(total, 0, nowhere):
            log.warning("executors: the cluster did not take the request for %d", total)

    def _kill(self, names: tuple[str, ...], total: int) -> None:
        jvm: Any = self._spark.sparkContext._jvm
        listed = jvm.java.util.ArrayList()
        for name in names:
            listed.add(name)
        # Before they go, or the cluster brings others for them; and after, for sending one away lowers what is wanted by one.
        self._request(total)
        self._context().killExecutors(jvm.PythonUtils.toSeq(listed))
        self._request(total)
        self._look()

    def _context(self) -> Any:
        return self._spark.sparkContext._jsc.sc()


def _age(name: str) -> tuple[int, str]:
    """Spark numbers executors in the order in which they come."""
    return (int(name), "") if name.isdigit() else (MANY * MANY, name)
