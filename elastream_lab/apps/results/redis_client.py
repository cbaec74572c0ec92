"""A connection to Redis, by its protocol RESP 2: commands enter, their replies leave.

A server that goes away is looked for again for half a minute, and the commands are sent again: send none that may not come twice.
"""

import socket
import time
from collections.abc import Sequence
from io import BufferedReader
from typing import Any
from urllib.parse import unquote, urlsplit

from elastream.errors import OperatorFailed, SettingError
from elastream_lab.apps.results.address import Address

WAITS_S = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Before each try to reach a server that went away: what a sink cannot store is set aside for good."""

REPLY_S = 10.0
"""How long a server may take to answer."""

PORT = 6379

Word = str | int | bytes
Reply = Any
"""bytes, int, None or a list of such."""


class RedisError(Exception):
    """The server's own words: it has understood, and refuses."""


class Redis:
    """For one thread at a time. It connects when it is first used."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._replies: BufferedReader | None = None

    def check(self) -> None:
        """Connect now, and look for the server once: one that cannot be used is said before anything runs."""
        try:
            self._connect()
        except (OSError, ValueError, RedisError) as error:
            raise SettingError(
                f"database {self._address.shown}: {self._address.hide(error)}; check that the server runs, and the URL"
            ) from None

    def run(self, *commands: Sequence[Word]) -> list[Reply]:
        """All commands in one message. Raises `OperatorFailed`, also when the server refuses one of them."""
        said = ""
        for wait_s in WAITS_S:
            time.sleep(wait_s)
            try:
                if self._socket is None:
                    self._connect()
                return self._send(commands)
            except RedisError as error:
                said = self._address.hide(error)
                # So says one that has just started, while it reads its file.
                if not said.startswith("LOADING"):
                    break
            except OSError as error:
                said = self._address.hide(error)
                self.close()
        raise OperatorFailed(f"database {self._address.shown}: {said}") from None

    def close(self) -> None:
        for part in (self._replies, self._socket):
            if part is not None:
                part.close()
        self._socket = self._replies = None

    def _connect(self) -> None:
        self.close()
        parts = urlsplit(self._address.target)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or PORT), timeout=REPLY_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = self._socket.makefile("rb")
        names = [unquote(word) for word in (parts.username, parts.password) if word]
        login = [("AUTH", *names)] if names else []
        try:
            self._send([*login, ("SELECT", parts.path.strip("/") or 0)])
        except BaseException:
            self.close()
            raise

    def _send(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        assert self._socket is not None
        self._socket.sendall(b"".join(map(encoded, commands)))
        # All replies are read before one of them is raised, so that the next command gets its own.
        replies = [self._reply() for _ in commands]
        for reply in replies:
            if isinstance(reply, RedisError):
                raise reply
        return replies

    def _reply(self) -> Reply:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._exactly(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        raise ConnectionError(f"expected a reply of Redis, got {line[:40]!r}")

    def _line(self) -> bytes:
        assert self._replies is not None
        line = self._replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        return line[:-2]

    def _exactly(self, size: int) -> bytes:
        assert self._replies is not None
        data = self._replies.read(size)
        if len(data) < size:
            raise ConnectionError("the server closed the connection")
        return data


def encoded(command: Sequence[Word]) -> bytes:
    """A command as it is sent: an array of words, each behind its length."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])
