"""The lease: one driver at a time has the base."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from elastream.errors import BaseInUse
from elastream.lanes import Store
from elastream.lanes.lease import BaseLease, _LockFile

_HOLDER = """
import sys
from elastream.lanes import Store
from elastream.lanes.lease import BaseLease
lease = BaseLease(Store(sys.argv[1]))
lease.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(store: Store) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has taken the base."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, store.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_driver_is_refused_and_told_who_holds_the_base(store: Store, holder: "subprocess.Popen[str]") -> None:
    with pytest.raises(BaseInUse) as caught:
        BaseLease(store).acquire()
    assert f'"pid": {holder.pid}' in str(caught.value)
    assert str(store) in str(caught.value)
    assert "stop it, or choose another base" in str(caught.value)


def test_a_base_is_free_as_soon_as_its_driver_was_killed(store: Store, holder: "subprocess.Popen[str]") -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    lease = BaseLease(store)
    lease.acquire()
    with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}'):
        BaseLease(store).acquire()
    lease.release()


def test_a_released_base_can_be_taken_again(store: Store) -> None:
    first, second = BaseLease(store), BaseLease(store)
    first.acquire()
    first.confirm()
    first.keep()
    first.release()
    second.acquire()
    with pytest.raises(BaseInUse):
        first.acquire()
    second.release()


def test_a_refused_driver_does_not_wipe_out_who_holds_the_base(store: Store) -> None:
    lease = BaseLease(store)
    lease.acquire()
    for _ in range(2):
        with pytest.raises(BaseInUse, match=str(os.getpid())):
            BaseLease(store).acquire()
    lease.release()


def test_a_driver_whose_lock_was_lost_stops_after_the_entry_that_nobody_will_read(store: Store) -> None:
    old, new = BaseLease(store), BaseLease(store)
    old.acquire()
    old.confirm()
    # As a network file system may do it: the lock is gone, and nobody has told the driver.
    assert isinstance(old._lock, _LockFile)
    fcntl.flock(old._lock._descriptor, fcntl.LOCK_UN)
    new.acquire()
    with pytest.raises(BaseInUse, match="has taken it over; this driver stops"):
        old.confirm()
    old.release()
    new.confirm()
    new.release()
    third = BaseLease(store)
    third.acquire()
    with pytest.raises(BaseInUse):
        new.confirm()


def test_a_forked_child_does_not_keep_the_base_of_a_driver_that_is_gone(store: Store) -> None:
    script = f"""
import os, sys, time
from elastream.lanes import Store
from elastream.lanes.lease import BaseLease
lease = BaseLease(Store({store.uri!r}))
lease.acquire()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None and driver.stdin is not None
        child = int(driver.stdout.readline())
        driver.kill()
        driver.wait()
        os.kill(child, 0)
        lease = BaseLease(store)
        lease.acquire()
        lease.release()


def test_files_of_others_among_the_claims_do_not_matter(store: Store) -> None:
    (store.local_path / "claims").mkdir(parents=True)
    for name in (".DS_Store", "99999999-x.claim", "00000009.claim~"):
        (store.local_path / "claims" / name).write_bytes(b"?")
    lease = BaseLease(store)
    lease.acquire()
    lease.confirm()
    lease.release()


def test_a_claim_that_a_crash_left_half_written_is_removed(store: Store) -> None:
    folder = store.local_path / "claims"
    folder.mkdir(parents=True)
    cut_off = folder / f"00000001-{'0' * 32}.claim.unfinished"
    cut_off.write_bytes(b"half")
    lease = BaseLease(store)
    lease.acquire()
    assert not cut_off.exists()
    lease.release()
