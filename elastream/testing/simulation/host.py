"""A simulated host: real works in virtual time, in seats as a real host has them."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa

from elastream import rules
from elastream.engine import messages
from elastream.engine.messages import (
    Chairs,
    End,
    Receipt,
    Receipts,
    Routing,
    ServeWork,
    SyncWork,
    Usage,
    WakeWork,
    Welcome,
    WholeWork,
    Work,
    Works,
)
from elastream.engine.worker.context import WorkerContext, make_context
from elastream.engine.worker.host import SPARE_SEATS
from elastream.engine.worker.program import Program
from elastream.engine.worker.run_work import run_work
from elastream.lanes.runs import Runs
from elastream.lanes.segment_files import NO_RUNS, BatchCache, Batches, SegmentReader, SegmentWriter, Written
from elastream.lanes.segments import SchemaId, Slice, WrittenFor
from elastream.testing.simulation.scheduler import Killed, Process, Scheduler
from elastream.testing.simulation.storage import Disk, SimulatedStore


class HostTiming(NamedTuple):
    """How long things take in a host; each call draws anew."""

    step_s: Callable[[], float]
    """Between two looks at the clock."""
    start_s: Callable[[], float]
    """From the arrival of a work to its beginning."""
    interleaved: Callable[[], bool]
    """True when a work runs in a strand of its own, and others may run in the middle of it."""
    cpu_share: float
    wall_s: Callable[[], float]


class HostProcess(Process):
    """One incarnation of a host."""

    def __init__(
        self,
        scheduler: Scheduler,
        number: int,
        incarnation: str,
        program: Program,
        disk: Disk,
        timing: HostTiming,
        say: Callable[["HostProcess", bytes], None],
    ) -> None:
        """`say` sends a message to the driver."""
        super().__init__(scheduler, f"host {number} {incarnation}")
        self.number = number
        self.incarnation = incarnation
        self.context: WorkerContext | None = None
        self._program = program
        self._disk = disk
        self._timing = timing
        self._say = say
        self._unread: deque[bytes] = deque()
        self._routing = Routing()
        self._computing = _Seats(self, 1)
        self._waiting = _Seats(self, rules.MOST_WAITING)

    def post(self, data: bytes) -> None:
        """A message of the driver has come. It is read when the process runs, in the order in which they came."""
        self._unread.append(data)
        self.later(0.0, self._read)

    def _read(self) -> None:
        message = messages.decode_to_host(self._unread.popleft())
        if isinstance(message, Works):
            for work in message.works:
                self._seat(work)
        elif isinstance(message, Routing):
            self._routing = message
        elif isinstance(message, Welcome):
            self.context = self._make_context()
            self.context.learn(message.schemas)
        elif isinstance(message, Chairs):
            self._waiting.resize(message.seats + SPARE_SEATS)
            self._say(self, messages.encode(Usage(0, 0.0, 0.0, message.seats)))
        elif isinstance(message, End):
            self.kill()

    def kill(self) -> None:
        super().kill()
        # Strands that pause are unwound before.
        self.scheduler.after(0.0, self.free)

    def free(self) -> None:
        """Let go of its state, which was in its memory."""
        if self.context is not None and self.context.state is not None:
            self.context.state.close()
            self.context.state = None

    def _make_context(self) -> WorkerContext:
        store = SimulatedStore(self._disk, self, locked=True)
        context = make_context(self._program, store, self.incarnation, cached=True, now=self._now)
        cache = BatchCache()
        context.writer = _PausingWriter(
            self,
            store,
            self.incarnation,
            appends=self._program.appends,
            cache=cache,
            clock=lambda: self.scheduler.now + self.scheduler.spent_s,
        )
        context.reader = _PausingReader(self, store, cache)
        context.wall_s = self._timing.wall_s
        context.cpu_s = lambda: (self.scheduler.now + self.scheduler.spent_s) * self._timing.cpu_share
        return context

    def _now(self) -> float:
        self.scheduler.pause(self._timing.step_s())
        return self.scheduler.now + self.scheduler.spent_s

    def _seat(self, work: Work) -> None:
        routing = self._routing
        waits = isinstance(work, SyncWork | WholeWork) or (isinstance(work, ServeWork | WakeWork) and not work.computes)
        (self._waiting if waits else self._computing).submit(work, routing)

    def begin(self, work: Work, routing: Routing, done: Callable[[], None]) -> None:
        """Do a work: in a strand of its own, or at once with its receipt when its time has passed."""
        if self._timing.interleaved():
            self.spawn(lambda: self._finish(*self._run(work, routing), done))
            return
        try:
            with self.scheduler.at_once(self):
                receipt, written = self._run(work, routing)
                spent_s = self.scheduler.spent_s
        except Killed:
            return
        self.later(spent_s, lambda: self._finish(receipt, written, done))

    def _run(self, work: Work, routing: Routing) -> tuple[Receipt, Written | None]:
        assert self.context is not None
        self.scheduler.pause(self._timing.start_s())
        receipt, written = run_work(self.context, routing, work)
        # It may have died meanwhile: works catch whatever user code raises, and so what ends a strand, too.
        self.check()
        return receipt, written

    def _finish(self, receipt: Receipt, written: Written | None, done: Callable[[], None]) -> None:
        assert self.context is not None
        self._say(self, messages.encode(Receipts([receipt], self.context.writer.ended())))
        if written is not None:
            self.context.writer.release(written)
        done()


class _Seats:
    """So many works at a time; the others wait for their turn."""

    def __init__(self, process: HostProcess, size: int) -> None:
        self._process = process
        self._size = size
        self._running = 0
        self._queue: deque[tuple[Work, Routing]] = deque()

    def submit(self, work: Work, routing: Routing) -> None:
        self._queue.append((work, routing))
        self._fill()

    def resize(self, size: int) -> None:
        self._size = size
        self._fill()

    def _fill(self) -> None:
        while self._queue and self._running < self._size:
            self._running += 1
            self._process.begin(*self._queue.popleft(), self._done)

    def _done(self) -> None:
        self._running -= 1
        self._fill()


class _PausingWriter(SegmentWriter):
    """Lets time pass before and after a write, where no lock is held."""

    def __init__(
        self,
        process: Process,
        store: SimulatedStore,
        prefix: str,
        *,
        appends: bool,
        cache: BatchCache,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(store, prefix, appends=appends, cache=cache, clock=clock)
        self._process = process

    def write(
        self,
        batches: Batches,
        schemas: Mapping[str, SchemaId],
        kept: frozenset[str],
        runs: Mapping[WrittenFor, Runs] = NO_RUNS,
    ) -> Written:
        self._process.scheduler.pause(0.0)
        written = super().write(batches, schemas, kept, runs)
        self._process.scheduler.pause(0.0)
        return written


class _PausingReader(SegmentReader):
    """The same for reading."""

    def __init__(self, process: Process, store: SimulatedStore, cache: BatchCache) -> None:
        super().__init__(store, cache)
        self._process = process

    def read(self, piece: Slice, schema: pa.Schema) -> pa.RecordBatch:
        batch = super().read(piece, schema)
        self._process.scheduler.pause(0.0)
        return batch
