"""Where a base may be on a local disk, and that a write is whole or not there."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elastream.errors import BaseUnusable
from elastream.lanes import Store
from elastream.lanes.lease import BaseLease
from elastream.lanes.store import is_network_path


def test_a_write_is_whole_or_not_there(store: Store, tmp_path: Path) -> None:
    store.write("ledger/x", b"first")
    store.write("ledger/x", b"second, and longer")
    assert store.read("ledger/x") == b"second, and longer"
    assert store.sizes("ledger") == {"x": 18}
    assert [path.name for path in (tmp_path / "base" / "ledger").iterdir()] == ["x"]
    store.delete(["ledger/x", "ledger/never-was"])
    assert not store.exists("ledger/x")


_FILL_THE_DISK = """
import resource, sys
from elastream.lanes import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    Store(sys.argv[1]).write("ledger/x", bytes(1_000_000))
except OSError:
    sys.exit(7)
"""


def test_a_write_that_breaks_off_leaves_what_was_there(store: Store, tmp_path: Path) -> None:
    store.write("ledger/x", b"before")
    # A limit on the size of files does to one process what a full disk does to all.
    done = subprocess.run([sys.executable, "-c", _FILL_THE_DISK, store.uri], check=False)
    assert done.returncode == 7
    assert store.read("ledger/x") == b"before"
    assert store.sizes("ledger") == {"x": 6}
    assert [path.name for path in (tmp_path / "base" / "ledger").glob("*.unfinished")] == ["x.unfinished"]


@pytest.mark.parametrize("below", ["", "deeper", "much/deeper"])
def test_a_base_that_cannot_be_a_directory_is_unusable(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    store = Store(str(file / below))
    with pytest.raises(BaseUnusable) as caught:
        BaseLease(store).acquire()
    assert str(caught.value).startswith(f"base {store}: cannot be written: ")
    assert "choose another base or mend its permissions" in str(caught.value)
    assert file.read_text() == "not a directory"


def test_a_base_on_no_known_filesystem_is_unusable() -> None:
    with pytest.raises(BaseUnusable, match="base nosuch://somewhere/dir: pyarrow cannot open it"):
        Store("nosuch://somewhere/dir")


def test_a_local_base_may_be_given_as_an_address(tmp_path: Path) -> None:
    store = Store((tmp_path / "base").as_uri())
    store.write("ledger/x", b"data")
    assert store.is_local
    assert store.local_path == tmp_path / "base"
    assert (tmp_path / "base" / "ledger" / "x").read_bytes() == b"data"


# -- files that must not be there yet


def test_a_file_that_is_there_is_not_written_again(store: Store, tmp_path: Path) -> None:
    assert store.write_new("ledger/x", b"first")
    assert not store.write_new("ledger/x", b"second")
    assert store.read("ledger/x") == b"first"
    assert [path.name for path in (tmp_path / "base" / "ledger").iterdir()] == ["x"]


def test_of_many_that_write_the_same_new_file_one_succeeds(store: Store) -> None:
    def attempt(number: int) -> bool:
        return Store(store.uri).write_new("ledger/x", bytes([number]) * 100_000)

    for _ in range(10):
        with ThreadPoolExecutor(8) as pool:
            (winner,) = [number for number, won in enumerate(pool.map(attempt, range(8))) if won]
        assert store.read("ledger/x") == bytes([winner]) * 100_000
        assert store.sizes("ledger") == {"x": 100_000}
        store.remove_unfinished("ledger")
        store.delete(["ledger/x"])


def test_a_new_file_that_cannot_be_finished_leaves_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space left"):
        store.write_new("ledger/x", b"data")
    assert list((tmp_path / "base" / "ledger").iterdir()) == []


def test_what_a_crash_left_half_written_is_no_file_and_can_be_removed(store: Store, tmp_path: Path) -> None:
    store.write("segments/a.arrow", b"whole")
    for name in ("segments/b.arrow.unfinished", "segments/c.arrow.12.unfinished"):
        (tmp_path / "base" / name).write_bytes(b"ha")
    assert store.sizes("segments") == {"a.arrow": 5}
    for folder in ("segments", "never-made"):
        store.remove_unfinished(folder)
    assert [path.name for path in (tmp_path / "base" / "segments").iterdir()] == ["a.arrow"]


def test_part_of_a_file_and_several_files_are_read(store: Store) -> None:
    for name in "abc":
        store.write(f"ledger/{name}", f"content of {name}".encode())
    assert store.read_from("ledger/b", 11) == b"b"
    assert store.read_from("ledger/b", 12) == b""
    assert store.read_many([f"ledger/{name}" for name in "ca"]) == [b"content of c", b"content of a"]
    with pytest.raises(FileNotFoundError):
        store.read_many(["ledger/a", "ledger/d"])


# -- directories that another machine keeps


@pytest.mark.parametrize(
    ("path", "network"),
    [("/data/run", False), ("/data/shared/run", True), ("/data/shared2/run", False), ("/home/me", True), ("/", False)],
)
def test_linux_tells_which_directories_another_machine_keeps(
    path: str, network: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = "/dev/a / ext4 rw 0 0\n/dev/b /data xfs rw 0 0\nfar:/x /data/shared nfs4 rw 0 0\nbox:/h /home fuse.sshfs rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: mounts)
    assert is_network_path(Path(path)) is network


def test_a_link_is_followed_to_the_directory_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far")
    mounts = f"/dev/a / ext4 rw 0 0\nfar:/x {tmp_path.resolve()}/far nfs4 rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: mounts)
    assert is_network_path(tmp_path / "link" / "base")
    assert not Store(str(tmp_path / "link" / "base")).appends
    assert Store(str(tmp_path / "near")).appends


def test_where_nothing_tells_a_directory_counts_as_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", unknown)
    assert is_network_path(Path("/data"))
