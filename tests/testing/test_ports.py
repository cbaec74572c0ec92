"""Ports for servers that are stopped and started again."""

import random
import socket

import pytest

from elastream.testing.ports import FIRST, LAST, free_ports


def test_ports_are_different_and_no_outgoing_connection_gets_one() -> None:
    found = free_ports(50)
    assert len(set(found)) == 50
    assert all(FIRST <= port < LAST < 32_768 for port in found)


def test_a_port_at_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    (taken,) = free_ports(1)
    monkeypatch.setattr(random, "sample", lambda among, count: [taken])
    with socket.create_server(("127.0.0.1", taken)), pytest.raises(OSError, match="no 1 free ports"):
        free_ports(1)
