"""Hosts on Spark: each is a job of one long task, as Spark Streaming's receivers were. Spark places it, and restarts it.

A thread per host waits for its job, and starts another one when it ends. How many there shall be is the fleet's to say.
"""

import contextlib
import logging
import threading
import time
import uuid
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from elastream.engine.hosts.link import Event, HostCame, HostsFailed
from elastream.engine.hosts.refusal import refusal_in
from elastream.engine.hosts.server import HostServer
from elastream.engine.messages import ToHost
from elastream.engine.spark.java_errors import GONE, is_gone, java_reason
from elastream.engine.spark.session import is_stopped
from elastream.engine.spark.stderr_filter import last_lines
from elastream.engine.worker.host import serve_as_host
from elastream.engine.worker.program import Program, load_program

log = logging.getLogger("elastream.hosts")

LIVED_S = 10.0
"""A host that lived this long is started again at once."""

END_S = 1.0
"""How long the task of a host that is not needed any more may take to end by itself."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0

MOST_FAILURES = 8
"""So many jobs in a row, each ended before any host came: then hosts cannot be had at all."""


@dataclass
class _Job:
    group: str
    thread: threading.Thread | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when it shall not be started again."""


class SparkHosts:
    """Keeps the hosts that it is told to."""

    def __init__(self, spark: SparkSession, bind: str) -> None:
        self._spark = spark
        self._server = HostServer(bind)
        self._jobs: dict[int, _Job] = {}
        self._closed = threading.Event()
        self._came: set[int] = set()
        """Hosts that have come since their job was started last."""
        self._failed: list[HostsFailed] = []
        self._reason = ""
        """Why a job of a host ended last."""
        self._program = b""
        self._name = f"elastream-{uuid.uuid4().hex[:8]}"

    def start(self, program: Program) -> None:
        self._program = program.to_bytes()

    # -- as the tick sees it

    def poll(self, timeout_s: float) -> list[Event]:
        events = self._server.poll(timeout_s)
        self._came.update(event.host for event in events if isinstance(event, HostCame))
        while self._failed:
            events.append(self._failed.pop())
        return events

    def send(self, host: int, message: ToHost) -> None:
        self._server.send(host, message)

    def wake(self) -> None:
        self._server.wake()

    def keep(self, host: int) -> None:
        if host not in self._jobs:
            job = self._jobs[host] = _Job(f"{self._name}-{host}-{uuid.uuid4().hex[:4]}")
            job.thread = threading.Thread(
                target=self._keep, args=(host, job), name=f"elastream-host-{host}", daemon=True
            )
            job.thread.start()

    def end(self, host: int) -> None:
        job = self._jobs.pop(host, None)
        if job is not None:
            job.ended.set()
            self._server.drop(host)
            threading.Thread(target=self._cancel_later, args=(job,), daemon=True).start()

    def replace(self, host: int) -> None:
        self._server.drop(host)
        job = self._jobs.get(host)
        if job is not None:
            # Spark ends the process, should it not end by itself.
            threading.Thread(target=self._cancel, args=(job,), daemon=True).start()

    def last_words(self) -> str:
        return "\n".join(words for words in (self._reason, last_lines()) if words)

    def close(self) -> None:
        self._closed.set()
        jobs = list(self._jobs.values())
        for job in jobs:
            job.ended.set()
        self._server.close()
        # Hosts end when their connection does. Those that hang are ended by Spark, which need not be waited for.
        until = time.monotonic() + 0.7
        for job in jobs:
            if job.thread is not None:
                job.thread.join(max(0.0, until - time.monotonic()))
        left = [job for job in jobs if job.thread is not None and job.thread.is_alive()]
        for job in left:
            self._cancel(job)

    # -- threads

    def _keep(self, number: int, job: _Job) -> None:
        """Run the job, again and again, for as long as it is wanted."""
        context = self._spark.sparkContext
        address, secret = self._server.whereabouts
        program = self._program
        wait_s, failures = FIRST_WAIT_S, 0
        while not job.ended.is_set():
            began = time.monotonic()
            self._came.discard(number)
            try:
                context.setJobGroup(job.group, f"elastream host {number}", interruptOnCancel=True)
                context.parallelize([number], 1).foreachPartition(lambda _: host_task(number, address, secret, program))
            except Exception as error:
                if job.ended.is_set() or self._closed.is_set():
                    return
                self._reason = java_reason(error)
                log.info("the job of host %d ended: %s", number, self._reason)
                # One that came and went was killed, or replaced because of a tuple that hangs: another will come.
                failures = 0 if number in self._came else failures + 1
                if is_gone(error) or is_stopped(self._spark):
                    self._fail(GONE)
                    return
                if refused := refusal_in(str(error)):
                    self._fail(refused)
                    return
                if failures >= MOST_FAILURES:
                    self._fail(f"hosts: Spark cannot run them: {self._reason}")
                    return
            if time.monotonic() - began > LIVED_S:
                wait_s, failures = FIRST_WAIT_S, 0
            job.ended.wait(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _fail(self, reason: str) -> None:
        self._failed.append(HostsFailed(reason))
        self._server.wake()

    def _cancel_later(self, job: _Job) -> None:
        """Its task ends when its connection does; one that waits for a slot, or hangs, is ended by Spark."""
        assert job.thread is not None
        job.thread.join(END_S)
        if job.thread.is_alive():
            self._cancel(job)

    def _cancel(self, job: _Job) -> None:
        with contextlib.suppress(Exception):
            self._spark.sparkContext.cancelJobGroup(job.group)


def host_task(number: int, address: tuple[str, int], secret: bytes, program: bytes) -> None:
    """The task, in a Python worker."""
    serve_as_host(number, address, secret, *load_program(program))
