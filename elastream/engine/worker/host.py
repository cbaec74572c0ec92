"""Inside a host: works come over a socket, seats do them, receipts go back.

A host has one computing seat, for Python runs one thread at a time, and as many others as works wait in it at once. The main
thread reads the socket; each seat sends its own receipts.
"""

import contextlib
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable

from elastream import rules
from elastream.engine import messages, wire
from elastream.engine.messages import (
    Chairs,
    Receipts,
    Routing,
    ServeWork,
    SyncWork,
    WakeWork,
    Welcome,
    WholeWork,
    Work,
    Works,
)
from elastream.engine.threads import DaemonPool
from elastream.engine.worker.base_id import check_base
from elastream.engine.worker.context import WorkerContext, make_context
from elastream.engine.worker.program import Program
from elastream.engine.worker.run_work import run_work
from elastream.engine.worker.usage import UsageMeter, executor_name
from elastream.lanes.store import Store

PATIENCE_S = 0.5
"""How long seats may go on when the driver has ended the connection: what they do will not count."""

CONNECT_S = 5.0

USAGE_S = 1.0
"""Between two reports of what the host and its machine use."""

SPARE_SEATS = 8
"""For works about states, which run beside those that wait."""

Address = tuple[str, int]


def serve_as_host(
    number: int,
    address: Address,
    secret: bytes,
    program: Program,
    store: Store,
    abandon: Callable[[], object] = lambda: os._exit(0),
) -> None:
    """Be a host until the driver ends the connection. A driver that is gone has no use for one.

    `abandon` is called when a seat does not come back: threads cannot be ended, processes can.
    """
    try:
        connection = socket.create_connection(address, timeout=CONNECT_S)
    except OSError:
        return
    with connection:
        try:
            wire.greet_as_host(connection, secret)
        except OSError:
            return
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host = Host(number, connection, program, store)
        try:
            host.run()
        finally:
            if not host.close():
                abandon()


class Host:
    """One process, or one thread in a test."""

    def __init__(self, number: int, connection: socket.socket, program: Program, store: Store) -> None:
        self.incarnation = f"h{uuid.uuid4().hex[:11]}"
        self._number = number
        self._connection = connection
        self._sending = threading.Lock()
        self._program = program
        self._store = store
        self._context: WorkerContext | None = None
        self._computing = DaemonPool(1, "elastream-computing")
        self._waiting = DaemonPool(rules.MOST_WAITING, "elastream-waiting")
        self._seats = 0
        self._meter = UsageMeter()
        self._closed = threading.Event()
        self._under_way = 0
        self._count = threading.Lock()

    def run(self) -> None:
        """Read messages until the connection ends."""
        check_base(self._store, self._program.base_id)
        machine = socket.gethostname()
        ready = messages.Ready(self._number, self.incarnation, os.getpid(), machine, executor_name())
        self._send(messages.encode(ready))
        threading.Thread(target=self._report, name="elastream-usage", daemon=True).start()
        routing = Routing()
        while (frame := wire.read_frame(self._connection)) is not None:
            message = messages.decode_to_host(frame)
            if isinstance(message, Works):
                for work in message.works:
                    self._seat(work, routing)
            elif isinstance(message, Routing):
                routing = message
            elif isinstance(message, Welcome):
                self._context = make_context(self._program, self._store, self.incarnation, cached=True)
                self._context.learn(message.schemas)
            elif isinstance(message, Chairs):
                self._seats = message.seats
                self._waiting.resize(message.seats + SPARE_SEATS)
                self._tell_usage()
            else:
                return

    def close(self) -> bool:
        """Let go of everything; False when a seat is still busy after a while."""
        self._closed.set()
        self._computing.close()
        self._waiting.close()
        until = time.monotonic() + PATIENCE_S
        while self._under_way and time.monotonic() < until:
            time.sleep(0.01)
        if self._context is not None:
            self._context.close()
        return not self._under_way

    def _seat(self, work: Work, routing: Routing) -> None:
        # States are learned and written beside what computes: a lane may stand still until that is done.
        waits = isinstance(work, SyncWork | WholeWork) or (isinstance(work, ServeWork | WakeWork) and not work.computes)
        (self._waiting if waits else self._computing).submit(lambda: self._do(work, routing))

    def _do(self, work: Work, routing: Routing) -> None:
        assert self._context is not None
        with self._count:
            self._under_way += 1
        receipt, written = run_work(self._context, routing, work)
        # Operators that print are heard at once, and not when the host ends.
        with contextlib.suppress(Exception):
            # An operator may have closed it, or put something else there.
            sys.stdout.flush()
        try:
            self._send(messages.encode(Receipts([receipt], self._context.writer.ended())))
        except OSError:
            # The driver is gone; the main thread sees it too.
            pass
        finally:
            if written is not None:
                self._context.writer.release(written)
            with self._count:
                self._under_way -= 1

    def _report(self) -> None:
        while not self._closed.wait(USAGE_S):
            self._tell_usage()

    def _tell_usage(self) -> None:
        # The driver may be gone; the main thread sees it too.
        with contextlib.suppress(OSError):
            self._send(messages.encode(self._meter.look(self._seats)))

    def _send(self, message: bytes) -> None:
        data = wire.framed(message)
        with self._sending:
            self._connection.sendall(data)
