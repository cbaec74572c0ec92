"""Ports of the loopback interface for servers of one's own that may be stopped and started again."""

import random
import socket
from contextlib import ExitStack

FIRST, LAST = 20_000, 32_000
"""Below those that systems give to outgoing connections (Linux: from 32,768 on). A server that is away for a moment loses a
port from there to any client, and a client that tries to reach it may even be connected with itself."""


def free_ports(count: int) -> list[int]:
    """So many ports that nobody listens at, all different."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(range(FIRST, LAST), 1000):
            if len(found) == count:
                break
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports between {FIRST} and {LAST} on 127.0.0.1")
    return found
