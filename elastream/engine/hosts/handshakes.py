"""Accept connections and authenticate them, all in one thread with one selector.

Anyone who reaches the port can connect, so a connection is limited before it is authenticated: in number, in bytes and in
time. Nothing that a stranger does may end the loop or use up threads and descriptors.
"""

import contextlib
import errno
import logging
import resource
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from elastream.engine import messages, wire
from elastream.engine.messages import Ready

log = logging.getLogger("elastream.hosts")

DEADLINE_S = 10.0
"""Seconds for a whole handshake, from accepting the connection to the host's `Ready`."""

PENDING_LIMIT = 256
"""Connections that may be in a handshake and not authenticated. A new one replaces the oldest."""

ACCEPTS_PER_STEP = 16
"""Connections accepted before others get a chance to go on with their handshake."""

PAUSE_S = 0.05
"""Pause before accepting again when the process or the machine has no descriptor left."""

WARN_EVERY_S = 10.0

READY_BYTES = 16 << 10
"""Size limit of the first message. It names a host, a process and a machine."""


@dataclass(frozen=True)
class Greeted:
    """A connection that is authenticated, and the host at its other end."""

    connection: socket.socket
    ready: Ready


class Handshakes:
    """Connections in their handshake. `step` is called by one thread; `wake` by any."""

    def __init__(
        self,
        listener: socket.socket,
        secret: bytes,
        *,
        clock: Callable[[], float] = time.monotonic,
        pending_limit: int | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._listener = listener
        listener.setblocking(False)
        self._secret = secret
        self._clock = clock
        self._limit = pending_limit or descriptors_for_strangers()
        self._deadline_s = deadline_s
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._pending: dict[socket.socket, tuple[wire.DriverGreeting, float]] = {}
        """Each with its deadline, the oldest first."""
        self._paused_until: float | None = None
        """When to accept again; None while connections are accepted."""
        self._warn_again_s = clock()

    @property
    def pending(self) -> int:
        """Number of connections in their handshake."""
        return len(self._pending)

    def step(self, timeout_s: float | None = None) -> list[Greeted]:
        """Wait until something happens, go on with the handshakes, return those that are complete."""
        greeted: list[Greeted] = []
        for key, _ in self._selector.select(self._wait_s(timeout_s)):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._woken:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._pending:
                # A connection that `_accept` closed in this round is not pending any more.
                self._receive(key.fileobj, greeted)
        now = self._clock()
        for connection in [one for one, (_, deadline) in self._pending.items() if deadline <= now]:
            self._refuse(connection)
        if self._paused_until is not None and self._paused_until <= now:
            self._paused_until = None
            self._selector.register(self._listener, selectors.EVENT_READ)
        return greeted

    def wake(self) -> None:
        """End the wait of `step`."""
        with contextlib.suppress(OSError):
            self._waker.send(b"x")

    def close(self) -> None:
        """Close the listener and every pending connection. The thread that calls `step` must have ended."""
        for connection in list(self._pending):
            self._refuse(connection)
        self._selector.close()
        for one in (self._listener, self._waker, self._woken):
            one.close()

    def _wait_s(self, timeout_s: float | None) -> float | None:
        """Seconds until a deadline or the end of a pause, at most `timeout_s`."""
        times = [deadline for _, deadline in self._pending.values()][:1]
        if self._paused_until is not None:
            times.append(self._paused_until)
        waits = [max(0.0, at - self._clock()) for at in times]
        if timeout_s is not None:
            waits.append(timeout_s)
        return min(waits, default=None)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_STEP):
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ECONNABORTED:
                    # EMFILE, ENFILE and the like: the connection stays in the queue, so without a pause this would spin.
                    self._pause(error)
                    return
                continue
            strangers = self._strangers()
            if len(strangers) >= self._limit:
                self._refuse(strangers[0])
            self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        greeting = wire.DriverGreeting(self._secret, READY_BYTES)
        try:
            connection.setblocking(False)
            self._send(connection, greeting.nonce)
            self._selector.register(connection, selectors.EVENT_READ)
        except OSError:
            connection.close()
            return
        self._pending[connection] = greeting, self._clock() + self._deadline_s

    def _receive(self, connection: socket.socket, greeted: list[Greeted]) -> None:
        greeting, _ = self._pending[connection]
        try:
            while not greeting.complete:
                data = connection.recv(greeting.missing)
                if not data:
                    raise wire.NotOurs("the connection ended in the handshake")
                answer = greeting.feed(data)
                if answer:
                    self._send(connection, answer)
            ready = messages.decode_to_driver(greeting.message)
            if not isinstance(ready, Ready):
                raise wire.NotOurs(f"expected Ready as the first message, got {type(ready).__name__}")
        except BlockingIOError:
            return
        except (OSError, msgspec.DecodeError):
            self._refuse(connection)
            return
        self._forget(connection)
        greeted.append(Greeted(connection, ready))

    @staticmethod
    def _send(connection: socket.socket, data: bytes) -> None:
        """Send a few bytes. They fit into the empty buffer of a new connection, or the other side reads nothing."""
        if connection.send(data) != len(data):
            raise wire.NotOurs("the other side does not read")

    def _pause(self, error: OSError) -> None:
        now = self._clock()
        if now >= self._warn_again_s:
            self._warn_again_s = now + WARN_EVERY_S
            log.warning(
                "cannot accept connections: %s; %d handshakes are pending; if no stranger connects to this port, "
                "allow more descriptors (ulimit -n)",
                error.strerror,
                len(self._pending),
            )
        for connection in self._strangers()[:ACCEPTS_PER_STEP]:
            self._refuse(connection)
        self._selector.unregister(self._listener)
        self._paused_until = now + PAUSE_S

    def _strangers(self) -> list[socket.socket]:
        """Connections that are not authenticated, the oldest first."""
        return [one for one, (greeting, _) in self._pending.items() if not greeting.authenticated]

    def _refuse(self, connection: socket.socket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: socket.socket) -> None:
        del self._pending[connection]
        self._selector.unregister(connection)


def descriptors_for_strangers() -> int:
    """Limit of pending handshakes: an eighth of the descriptors of this process, at most `PENDING_LIMIT`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return PENDING_LIMIT if soft == resource.RLIM_INFINITY else max(1, min(PENDING_LIMIT, soft // 8))
