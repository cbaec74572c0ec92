"""Strangers at the driver's port: silent, slow, many or loud, they cost no thread and keep no host from joining."""

import contextlib
import errno
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from flows import collect, wait_for

from elastream.engine import messages, wire
from elastream.engine.hosts import handshakes
from elastream.engine.hosts.handshakes import Handshakes
from elastream.engine.hosts.server import HostServer
from elastream.engine.messages import Ready, Receipt, Receipts
from elastream.testing import ManualClock

SECRET = b"s" * 32
READY = wire.framed(messages.encode(Ready(3, "h1", 1, "here")))


opened: list[socket.socket] = []
"""Clients of the test that runs."""


@pytest.fixture(autouse=True)
def close_clients() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


def client_of(address: tuple[str, int]) -> socket.socket:
    opened.append(socket.create_connection(address, timeout=10))
    return opened[-1]


Listener = TypeVar("Listener", bound=socket.socket)


def listening() -> socket.socket:
    return listens(socket.socket(socket.AF_INET, socket.SOCK_STREAM))


def listens(listener: Listener) -> Listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def connected(listener: socket.socket) -> socket.socket:
    return client_of(listener.getsockname())


def begun(shakes: Handshakes, listener: socket.socket) -> socket.socket:
    """A connection that has been accepted."""
    before, client = shakes.pending, connected(listener)
    wait_for(lambda: shakes.step(0.1) == [] and shakes.pending > before)
    return client


def is_closed(client: socket.socket) -> bool:
    """True when nothing but the driver's nonce came before the end."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(4096):
            received += part
    return received == b"" or len(received) == wire.NONCE


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_descriptors")
def test_a_host_joins_while_500_silent_connections_are_open_and_they_take_no_thread() -> None:
    threads = threading.active_count()
    server = HostServer()
    try:
        silent = [client_of(server.address) for _ in range(500)]
        host = client_of(server.address)
        wire.greet_as_host(host, server.secret)
        host.sendall(READY)
        events: list[Any] = []
        collect(events, lambda: server.poll(0.1))
        assert [(type(event).__name__, event.host) for event in events] == [("HostCame", 3)]
        assert threading.active_count() <= threads + 1
        # The newest strangers are still in their handshake, and the others were closed. The host had one of the places.
        assert server._handshakes.pending == handshakes.PENDING_LIMIT - 1
        assert is_closed(silent[0])
    finally:
        server.close()


def test_a_handshake_of_one_byte_per_second_ends_at_its_deadline() -> None:
    listener, clock = listening(), ManualClock()
    shakes = Handshakes(listener, SECRET, clock=clock, deadline_s=10.0)
    client = begun(shakes, listener)
    for _ in range(9):
        client.sendall(b"x")
        clock.advance(1.0)
        shakes.step(0)
    assert shakes.pending == 1
    client.sendall(b"x")
    clock.advance(1.0)
    shakes.step(0)
    assert shakes.pending == 0 and is_closed(client)
    shakes.close()


def test_a_host_that_is_authenticated_and_says_nothing_ends_at_the_same_deadline() -> None:
    listener, clock = listening(), ManualClock()
    shakes = Handshakes(listener, SECRET, clock=clock, deadline_s=10.0)
    client = begun(shakes, listener)
    clock.advance(9.0)
    greeting = threading.Thread(target=wire.greet_as_host, args=(client, SECRET))
    greeting.start()
    wait_for(lambda: shakes.step(0.1) == [] and not greeting.is_alive())
    assert shakes.pending == 1
    clock.advance(1.0)
    shakes.step(0)
    assert shakes.pending == 0 and client.recv(1) == b""
    shakes.close()


def test_at_the_limit_the_oldest_stranger_goes_and_never_a_host_that_is_authenticated() -> None:
    listener = listening()
    shakes = Handshakes(listener, SECRET, pending_limit=2)
    host = begun(shakes, listener)
    greeting = threading.Thread(target=wire.greet_as_host, args=(host, SECRET))
    greeting.start()
    wait_for(lambda: shakes.step(0.1) == [] and not greeting.is_alive())
    strangers = [begun(shakes, listener) for _ in range(2)]
    strangers += [connected(listener) for _ in range(3)]
    wait_for(lambda: shakes.step(0.1) == [] and is_closed_now(strangers[2]))
    assert shakes.pending == 3
    assert [is_closed_now(one) for one in strangers] == [True, True, True, False, False]
    host.sendall(READY)
    [greeted] = shakes.step(10)
    assert greeted.ready.host == 3
    greeted.connection.close()
    shakes.close()


def is_closed_now(client: socket.socket) -> bool:
    """True when the other side has ended the connection; what was sent before is read."""
    client.settimeout(0.01)
    try:
        while client.recv(4096):
            pass
        return True
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_without_descriptors_the_driver_pauses_and_then_accepts_again(caplog: pytest.LogCaptureFixture) -> None:
    listener, clock = listening(), ManualClock()
    shakes = Handshakes(listener, SECRET, clock=clock)
    old = begun(shakes, listener)
    host = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    host.settimeout(10)
    opened.append(host)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        host.connect(listener.getsockname())
        wait_for(lambda: shakes.step(0.1) == [] and caplog.records)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "Too many open files; 1 handshakes are pending" in caplog.messages[0]
    # The oldest stranger made room. No accept until the pause is over, however often it is asked.
    assert is_closed(old)
    for _ in range(5):
        shakes.step(0)
    assert (shakes.pending, len(caplog.records)) == (0, 1)
    clock.advance(handshakes.PAUSE_S)

    def greet() -> None:
        wire.greet_as_host(host, SECRET)
        host.sendall(READY)

    greeting = threading.Thread(target=greet)
    greeting.start()
    greeted: list[Any] = []
    collect(greeted, lambda: shakes.step(0.1))
    assert greeted[0].ready.host == 3
    greeting.join()
    greeted[0].connection.close()
    shakes.close()


class AbortsOnce(socket.socket):
    """A listener whose first connection is gone before it is accepted."""

    aborted = False

    def accept(self) -> tuple[socket.socket, Any]:
        if not self.aborted:
            self.aborted = True
            raise OSError(errno.ECONNABORTED, "aborted")
        return super().accept()


def test_a_connection_that_is_aborted_before_it_is_accepted_does_not_end_the_listening() -> None:
    listener = listens(AbortsOnce(socket.AF_INET, socket.SOCK_STREAM))
    shakes = Handshakes(listener, SECRET)
    begun(shakes, listener).close()
    assert listener.aborted
    shakes.close()


def test_a_first_message_larger_than_any_ready_is_refused() -> None:
    server = HostServer()
    try:
        with client_of(server.address) as host:
            wire.greet_as_host(host, server.secret)
            message = messages.encode(Ready(3, "h1", 1, "x" * handshakes.READY_BYTES))
            with contextlib.suppress(ConnectionError):
                host.sendall(wire.framed(message))
            assert is_closed(host)
        assert server.poll(0.1) == []
    finally:
        server.close()


def test_what_a_host_sends_right_after_its_first_message_is_not_lost() -> None:
    server = HostServer()
    try:
        with client_of(server.address) as host:
            wire.greet_as_host(host, server.secret)
            host.sendall(READY + wire.framed(messages.encode(Receipts([Receipt(7)]))))
            events: list[Any] = []
            collect(events, lambda: server.poll(0.1), count=2)
        assert [type(event).__name__ for event in events] == ["HostCame", "HostSaid"]
        assert events[1].receipts == [Receipt(7)]
    finally:
        server.close()


def test_closing_ends_pending_handshakes_and_refuses_new_ones() -> None:
    server = HostServer()
    stranger = client_of(server.address)
    stranger.recv(wire.NONCE, socket.MSG_WAITALL)
    server.close()
    assert is_closed(stranger)
    with pytest.raises(ConnectionError):
        socket.create_connection(server.address, timeout=10)
