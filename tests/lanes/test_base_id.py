"""A host sees whether it looks at the driver's base, and says so before it reads or writes there."""

import socket
from pathlib import Path

import pytest
from flows import numbers

from elastream import Settings
from elastream.engine.worker.base_id import base_id, check_base
from elastream.engine.worker.host import Host
from elastream.engine.worker.program import Program
from elastream.errors import BaseUnusable
from elastream.lanes import Store


def test_a_base_keeps_its_name_and_has_no_other_bases_name(tmp_path: Path) -> None:
    one, other = Store(str(tmp_path / "one")), Store(str(tmp_path / "other"))
    assert base_id(one) == base_id(Store(str(tmp_path / "one"))) != base_id(other)
    check_base(one, base_id(one))


def test_a_machine_without_the_base_or_with_another_one_there_is_named(tmp_path: Path) -> None:
    driver, here = Store(str(tmp_path / "shared")), Store(str(tmp_path / "own"))
    with pytest.raises(BaseUnusable, match=r"own: machine \S+ does not see it; name one that all machines"):
        check_base(here, base_id(driver))
    base_id(here)
    with pytest.raises(BaseUnusable, match=r"own: machine \S+ has another directory there; name one that all machines"):
        check_base(here, base_id(driver))


def test_a_host_on_such_a_machine_does_not_begin(tmp_path: Path) -> None:
    graph = numbers(1).output("out", after="in").topology.build()
    program = Program(graph, Settings(), str(tmp_path), "the-drivers")
    here, there = socket.socketpair()
    with here, there, pytest.raises(BaseUnusable, match="does not see it"):
        Host(0, here, program, Store(str(tmp_path))).run()
    assert not list(tmp_path.iterdir())
