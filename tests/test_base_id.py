"""A worker sees whether it looks at the driver's base, and says so before it reads or writes there."""

from pathlib import Path

import pytest
from flows import numbers

from elastream import Settings
from elastream.engine.base_id import base_id, check_base
from elastream.engine.program import Program
from elastream.engine.task import run_task
from elastream.engine.work import TaskWork
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


def test_a_task_on_such_a_machine_does_nothing_and_its_receipt_says_why(tmp_path: Path) -> None:
    graph = numbers(1).output("out", after="in").build()
    program = Program(graph, Settings(), str(tmp_path), "the-drivers")
    receipt = run_task(program, Store(str(tmp_path)), TaskWork(1, 0.0, {}, {}, {}))
    assert receipt.error is not None and receipt.error["type"] == "BaseUnusable"
    assert "does not see it" in receipt.error["message"]
    assert not list(tmp_path.iterdir())
