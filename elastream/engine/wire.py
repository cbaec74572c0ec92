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


class DriverGreeting:
    """The driver's half of a handshake and the first message after it, without a socket: bytes in, bytes out.

    Before the other side has proved that it knows the secret, exactly 64 bytes are taken from it.
    """

    def __init__(self, secret: bytes, message_bytes: int) -> None:
        """Prepare the `nonce` to be sent. `message_bytes` limits the first message."""
        self.nonce = os.urandom(NONCE)
        self.authenticated = False
        self.message = b""
        """The first message, when `complete`."""
        self.complete = False
        self._secret = secret
        self._message_bytes = message_bytes
        self._part = bytearray()
        self._size = 2 * NONCE
        """Bytes of the part that is being read: the nonce and the proof, then a length, then the message."""
        self._reads_length = False

    @property
    def missing(self) -> int:
        """How many bytes to read next, at most."""
        return self._size - len(self._part)

    def feed(self, data: bytes) -> bytes:
        """Take at most `missing` bytes; return the answer to send. Raises `NotOurs` when the secret is wrong."""
        self._part += data
        if self.missing:
            return b""
        part, self._part = bytes(self._part), bytearray()
        if not self.authenticated:
            nonce, proof = part[:NONCE], part[NONCE:]
            if not hmac.compare_digest(proof, _proof(self._secret, b"host", self.nonce, nonce)):
                raise NotOurs("wrong secret")
            self.authenticated, self._reads_length, self._size = True, True, _LENGTH.size
            return _proof(self._secret, b"driver", self.nonce, nonce)
        if self._reads_length:
            self._reads_length, self._size = False, _checked_length(part, self._message_bytes)
            self.complete = self._size == 0
        else:
            self.message, self.complete = part, True
        return b""


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


def _checked_length(head: bytes | bytearray, most: int = MOST_BYTES) -> int:
    (length,) = _LENGTH.unpack(head)
    if length > most:
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
