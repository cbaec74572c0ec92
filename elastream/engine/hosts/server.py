"""The driver's end of the sockets: hosts come, say what they did, and go. One thread, the tick's, reads and writes them all.

A second thread accepts connections and checks that they know the run's secret (`handshakes.py`).
"""

import contextlib
import logging
import os
import selectors
import socket
import threading
from collections import deque

import msgspec

from elastream.engine import messages, wire
from elastream.engine.hosts.handshakes import Greeted, Handshakes
from elastream.engine.hosts.link import Event, HostCame, HostSaid, HostsFailed, HostUses, HostWent
from elastream.engine.messages import Ready, Receipts, ToHost, Usage

log = logging.getLogger("elastream.hosts")

CLOSE_S = 2.0
"""How long the handshakes' thread may take to end."""

READ_BYTES = 1 << 18


class _Connection:
    def __init__(self, connection: socket.socket, ready: Ready) -> None:
        self.socket = connection
        self.ready = ready
        self.reader = wire.FrameReader()
        self.unsent = bytearray()


class HostServer:
    """Listens for hosts. `address` is where they find it."""

    def __init__(self, bind: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.bind((bind, 0))
        self._listener.listen(128)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.secret = os.urandom(32)
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._live: dict[int, _Connection] = {}
        self._parked: dict[int, deque[_Connection]] = {}
        self._new: deque[_Connection | HostsFailed] = deque()
        self._closed = False
        self._handshakes = Handshakes(self._listener, self.secret)
        self._greeting = threading.Thread(target=self._greet, name="elastream-handshakes", daemon=True)
        self._greeting.start()

    @property
    def whereabouts(self) -> tuple[tuple[str, int], bytes]:
        """What a host must know to come: the address and the secret."""
        return self.address, self.secret

    # -- the tick's thread

    def poll(self, timeout_s: float) -> list[Event]:
        events: list[Event] = []
        for key, mask in self._selector.select(timeout_s):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
                continue
            connection: _Connection = key.data
            if mask & selectors.EVENT_WRITE:
                self._flush(connection)
            if mask & selectors.EVENT_READ:
                self._read(connection, events)
        while self._new:
            self._join(self._new.popleft(), events)
        return events

    def send(self, host: int, message: ToHost) -> None:
        connection = self._live.get(host)
        if connection is not None:
            connection.unsent += wire.framed(messages.encode(message))
            self._flush(connection)

    def drop(self, host: int) -> None:
        """End the connection. The host ends when it sees that."""
        connection = self._live.get(host)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed = True
        self._handshakes.wake()
        self._greeting.join(CLOSE_S)
        self._selector.close()
        new = [one for one in self._new if isinstance(one, _Connection)]
        for connection in (*self._live.values(), *new, *(c for parked in self._parked.values() for c in parked)):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
            connection.socket.close()
        self._live.clear()
        self._parked.clear()
        self._waker.close()
        self._woken.close()

    # -- any thread

    def wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b"x")

    # -- inside

    def _read(self, connection: _Connection, events: list[Event]) -> None:
        ready = connection.ready
        try:
            data = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone(connection, events)
            return
        try:
            for frame in connection.reader.feed(data):
                message = messages.decode_to_driver(frame)
                if isinstance(message, Receipts):
                    events.append(HostSaid(ready.host, ready.incarnation, message.receipts, message.ended))
                elif isinstance(message, Usage):
                    events.append(HostUses(ready.host, ready.incarnation, message))
        except (msgspec.DecodeError, wire.NotOurs) as error:
            log.warning("host %d sent what no host sends: %s; it is replaced", ready.host, error)
            self._gone(connection, events)

    def _gone(self, connection: _Connection, events: list[Event]) -> None:
        number = connection.ready.host
        self._selector.unregister(connection.socket)
        connection.socket.close()
        if self._live.get(number) is connection:
            del self._live[number]
            events.append(HostWent(number, connection.ready.incarnation))
            if self._parked.get(number):
                self._join(self._parked[number].popleft(), events)
        else:
            self._parked[number] = deque(c for c in self._parked.get(number, ()) if c is not connection)

    def _join(self, new: "_Connection | HostsFailed", events: list[Event]) -> None:
        if isinstance(new, HostsFailed):
            events.append(new)
            return
        ready = new.ready
        if new.socket.fileno() not in self._selector.get_map():
            self._selector.register(new.socket, selectors.EVENT_READ, new)
        if ready.host in self._live:
            # A second copy of a task that lives, such as Spark's speculation makes. Were it to end, Spark would end the first.
            self._parked.setdefault(ready.host, deque()).append(new)
            return
        self._live[ready.host] = new
        events.append(HostCame(ready.host, ready.incarnation, ready.pid, ready.machine, ready.executor))

    def _flush(self, connection: _Connection) -> None:
        try:
            while connection.unsent:
                sent = connection.socket.send(connection.unsent)
                del connection.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            # Reading says so too, and then it is gone.
            connection.unsent.clear()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        key = self._selector.get_map().get(connection.socket)
        if key is not None and key.events != wanted:
            self._selector.modify(connection.socket, wanted, connection)

    def _greet(self) -> None:
        """Have strangers authenticated until `close`, in a thread of its own."""
        try:
            while not self._closed:
                for greeted in self._handshakes.step():
                    self._greeted(greeted)
        finally:
            self._handshakes.close()

    def _greeted(self, greeted: Greeted) -> None:
        connection, ready = greeted.connection, greeted.ready
        if ready.version != messages.VERSION:
            connection.close()
            self._new.append(
                HostsFailed(
                    f"machine {ready.machine} speaks version {ready.version} of the hosts' language, this driver {messages.VERSION}; "
                    "install the same Elastream on all machines"
                )
            )
        else:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                keep_alive(connection)
            except OSError:
                # It is gone already.
                connection.close()
                return
            self._new.append(_Connection(connection, ready))
        self.wake()


def keep_alive(connection: socket.socket) -> None:
    """A machine that vanishes without a word is noticed within some ten seconds."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 11_000)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
