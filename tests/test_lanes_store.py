"""Where a base may be on a local disk, and that a write is whole or not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from elastream.errors import BaseUnusable
from elastream.lanes import Hold, Store


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
        Hold(store).take()
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
