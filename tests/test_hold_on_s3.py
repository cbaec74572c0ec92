"""The hold on an object store: a lease that runs out, and who has it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from elastream.errors import BaseInUse
from elastream.lanes import Hold, Store
from elastream.lanes.hold import LEASE_S
from elastream.lanes.sealed import seal, unseal


@pytest.fixture
def store(uri: str) -> Store:
    return Store(uri)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_second_driver_is_refused_while_the_lease_runs(store: Store, uri: str) -> None:
    clock = Clock()
    Hold(store, clock).take()
    clock.now += LEASE_S - 0.1
    with pytest.raises(BaseInUse) as caught:
        Hold(Store(uri), clock).take()
    assert str(caught.value).startswith(f"base {store}: in use by ")
    assert f'"pid": {os.getpid()}' in str(caught.value)
    assert "wait 30 s if it has died" in str(caught.value)


def test_a_lease_that_ran_out_is_taken_over_and_the_old_driver_stops_before_it_writes(store: Store, uri: str) -> None:
    clock = Clock()
    old, new = Hold(store, clock), Hold(Store(uri), clock)
    old.take()
    clock.now += LEASE_S
    new.take()
    with pytest.raises(BaseInUse, match="has taken it over; this driver stops before it writes"):
        old.renew()
    clock.now += LEASE_S / 2
    new.renew()
    clock.now += LEASE_S - 0.1
    with pytest.raises(BaseInUse):
        Hold(Store(uri), clock).take()


def test_the_driver_that_was_replaced_does_not_give_the_base_away_when_it_closes(store: Store, uri: str) -> None:
    clock = Clock()
    old, new = Hold(store, clock), Hold(Store(uri), clock)
    old.take()
    clock.now += LEASE_S
    new.take()
    with pytest.raises(BaseInUse):
        old.renew()
    old.release()
    with pytest.raises(BaseInUse):
        Hold(Store(uri), clock).take()


def test_a_driver_that_was_refused_does_not_give_the_base_away_either(store: Store, uri: str) -> None:
    clock = Clock()
    Hold(store, clock).take()
    for _ in range(2):
        refused = Hold(Store(uri), clock)
        with pytest.raises(BaseInUse):
            refused.take()
        refused.release()


def test_renewing_keeps_the_lease_and_does_not_write_at_every_tick(store: Store, uri: str) -> None:
    clock = Clock()
    hold = Hold(store, clock)
    hold.take()
    written = set()
    for _ in range(50):
        clock.now += 1.0
        hold.renew()
        written.add(store.read("lease.json"))
        with pytest.raises(BaseInUse):
            Hold(Store(uri), clock).take()
    assert 4 <= len(written) <= 6


def test_a_released_base_can_be_taken_at_once(store: Store, uri: str) -> None:
    clock = Clock()
    hold = Hold(store, clock)
    hold.take()
    hold.release()
    assert not store.exists("lease.json")
    Hold(Store(uri), clock).take()


def test_a_lease_from_another_machine_is_believed_until_it_runs_out(store: Store) -> None:
    clock = Clock()
    # A number that no process here has, on a host that is not this one.
    who = json.dumps({"host": "far-away", "pid": 2**22 + 1})
    store.write("lease.json", seal("lease", {"owner": "x", "who": who, "renewed_s": clock.now}))
    with pytest.raises(BaseInUse, match="far-away"):
        Hold(store, clock).take()
    clock.now += LEASE_S
    Hold(store, clock).take()
    assert json.loads(unseal("lease", store.read("lease.json"), "lease")["who"])["pid"] == os.getpid()


_HOLDER = """
import sys
from elastream.lanes import Hold, Store
Hold(Store(sys.stdin.readline().strip())).take()
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_holds_the_base_until_it_is_killed(store: Store, uri: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(uri + "\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BaseInUse, match=f'"pid": {holder.pid}'):
            Hold(store).take()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        # It was a process of this machine, so there is no need to wait for its lease.
        Hold(store).take()
        with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}'):
            Hold(Store(uri)).take()
