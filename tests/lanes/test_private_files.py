"""The files of a base are read by nobody but the user who runs it, and its lock is a file that a driver has made."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flows import finish, numbers

from elastream.errors import BaseUnusable
from elastream.lanes import Store
from elastream.lanes.lease import BaseLease
from elastream.state.store import StateStore
from elastream.testing import LocalEngine


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Of a user whose files everybody may read and write, unless a program says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(base: Path) -> dict[str, str]:
    """What a base holds, with its permissions."""
    return {str(path.relative_to(base)): oct(path.stat().st_mode & 0o777) for path in base.rglob("*")}


def check_private(base: Path) -> None:
    for name, mode in modes(base).items():
        assert mode == ("0o700" if (base / name).is_dir() else "0o600"), name


def count(key: int, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
    state.n += len(rows)
    if key == 3:
        raise ValueError("three")
    return rows


@pytest.mark.parametrize("processes", [False, True])
def test_everything_that_a_run_makes_in_its_base_is_private(processes: bool, tmp_path: Path) -> None:
    base = tmp_path / "above" / "base"
    flow = (
        numbers(100).key_by("id", after="in").process("a", count, state="n long", initial={"n": 0}, replicas=2).topology
    )
    with LocalEngine(processes=processes).start(flow.output("out", after="a"), str(base)) as handle:
        finish(handle)
        assert handle.dead_letters(remove=True).num_rows == 1
        check_private(base)
    check_private(base)
    made = {name.partition("/")[0] for name in modes(base)}
    assert {"lock", "ledger", "segments", "claims", "readers"} <= made
    assert oct(base.stat().st_mode & 0o777) == "0o700"
    assert oct(base.parent.stat().st_mode & 0o777) == "0o777", "what is above the base is none of its own"


def test_whole_files_and_new_ones_are_private(store: Store, tmp_path: Path) -> None:
    store.write("a/b/x", b"1")
    assert store.write_new("a/c/y", b"2") and not store.write_new("a/c/y", b"3")
    store.make_folder("d/e")
    check_private(tmp_path / "base")
    assert len(modes(tmp_path / "base")) == 7 and store.read("a/c/y") == b"2"


def test_the_store_of_states_is_private(tmp_path: Path) -> None:
    store = StateStore(["a"], str(tmp_path))
    assert oct(os.fstat(store._file).st_mode & 0o777) == "0o600"
    store.close()


def link_to(victim: Path, lock: Path) -> None:
    lock.symlink_to(victim)


def link_to_nothing(victim: Path, lock: Path) -> None:
    lock.symlink_to(victim.with_name("new"))


def second_name(victim: Path, lock: Path) -> None:
    os.link(victim, lock)


def pipe(victim: Path, lock: Path) -> None:
    os.mkfifo(lock)


def of_another(victim: Path, lock: Path) -> None:
    lock.write_text("theirs")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(lock, 12345, 12345)


@pytest.mark.parametrize(
    ("prepare", "given"),
    [
        (link_to, "a symbolic link"),
        (link_to_nothing, "a symbolic link"),
        (second_name, "a file with another name besides"),
        (pipe, "no regular file"),
        (of_another, "a file of user 12345"),
    ],
)
def test_a_lock_that_no_driver_made_is_refused_and_left_alone(
    prepare: Callable[[Path, Path], None], given: str, store: Store, tmp_path: Path
) -> None:
    victim, lock = tmp_path / "victim", store.local_path / "lock"
    victim.write_text("precious")
    store.make_folder("")
    prepare(victim, lock)
    with pytest.raises(BaseUnusable, match=f"'lock' must be a regular file of user .*, and is {given}; remove it"):
        BaseLease(store).acquire()
    assert victim.read_text() == "precious" and not (tmp_path / "new").exists()
    lock.unlink()
    lease = BaseLease(store)
    lease.acquire()
    lease.release()
