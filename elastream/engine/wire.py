"""Frames over a socket, and the handshake that begins every connection between driver and host.

Both sides prove that they know the run's secret, which travels inside the task and never over this socket.
"""

import hmac
import os
import socket
import struct
from collections.abc import Iterator

NONCE = 32
MOST_BYTES = 256 << 20
"""No message is larger; a length beyond this is not one of ours."""

_LENGTH = struct.Struct("<I")


class NotOurs(ConnectionError):
    """Whoever is at the other end does not know the secret, or does not speak our language."""


def framed(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message


def read_frame(connection: socket.socket) -> bytes | None:
    """The next message; None when the other side has ended the connection."""
    head = _read_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    return _read_exactly(connection, _checked_length(head))


class FrameReader:
    """Messages from bytes as they come, for a socket that does not block."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        held = self._held
        held += data
        at = 0
        while len(held) - at >= _LENGTH.size:
            length = _checked_length(held[at : at + _LENGTH.size])
            end = at + _LENGTH.size + length
            if len(held) < end:
                break
            yield bytes(held[at + _LENGTH.size : end])
            at = end
        del held[:at]


def greet_as_driver(connection: socket.socket, secret: bytes) -> None:
    """Raises `NotOurs` when the other side does not know the secret."""
    mine = os.urandom(NONCE)
    connection.sendall(mine)
    theirs = _nonce(connection)
    proof = _nonce(connection)
    if not hmac.compare_digest(proof, _proof(secret, b"host", mine, theirs)):
        raise NotOurs("wrong secret")
    connection.sendall(_proof(secret, b"driver", mine, theirs))


def greet_as_host(connection: socket.socket, secret: bytes) -> None:
    theirs, mine = _nonce(connection), os.urandom(NONCE)
    connection.sendall(mine + _proof(secret, b"host", theirs, mine))
    if not hmac.compare_digest(_nonce(connection), _proof(secret, b"driver", theirs, mine)):
        raise NotOurs("wrong secret")


def _proof(secret: bytes, who: bytes, driver: bytes, host: bytes) -> bytes:
    return hmac.digest(secret, who + driver + host, "sha256")


def _nonce(connection: socket.socket) -> bytes:
    data = _read_exactly(connection, NONCE)
    if data is None:
        raise NotOurs("the connection ended in the handshake")
    return data


def _checked_length(head: bytes | bytearray) -> int:
    (length,) = _LENGTH.unpack(head)
    if length > MOST_BYTES:
        raise NotOurs(f"a message of {length} bytes")
    return int(length)


def _read_exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        try:
            part = connection.recv(min(size, 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
