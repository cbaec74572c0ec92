"""The lease on an object store: whose heart beats has it, by the clock of whoever wants it."""

import os
import signal
import subprocess
import sys

import pytest
from lanes_on_disk import Clock

from elastream.errors import BaseInUse
from elastream.lanes import Store
from elastream.lanes import lease as lease_module
from elastream.lanes.lease import FOLDER, LEASE_S, BaseLease
from elastream.lanes.sealed import seal


@pytest.fixture
def store(uri: str) -> Store:
    return Store(uri)


def of_another_machine(store: Store, clock: Clock) -> BaseLease:
    """A lease whose process is not known here."""
    lease = BaseLease(store, clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease_module, "_process", lambda: ["another boot", "pid:[1]", "7", "1"])
        lease.acquire()
    return lease


def watching(uri: str, clock: Clock, at_each_look: object = None) -> BaseLease:
    """A lease that waits in no time."""

    def sleep(seconds: float) -> None:
        clock.now += seconds
        if callable(at_each_look):
            at_each_look()

    return BaseLease(Store(uri), clock, sleep)


def test_a_second_driver_of_this_machine_is_refused_at_once(store: Store, uri: str) -> None:
    BaseLease(store).acquire()
    with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}.*stop it, or choose another base'):
        BaseLease(Store(uri)).acquire()


def test_one_of_another_machine_is_refused_when_the_holder_lives(store: Store, uri: str) -> None:
    clock = Clock()
    holder = of_another_machine(store, clock)
    with pytest.raises(BaseInUse, match=f"base {store}: in use by "):
        watching(uri, clock, holder.keep).acquire()
    holder.confirm()


def test_a_holder_whose_heart_stands_still_is_taken_over_and_stops_should_it_come_back(store: Store, uri: str) -> None:
    clock = Clock()
    holder, new = of_another_machine(store, clock), watching(uri, clock)
    before = clock.now
    new.acquire()
    assert LEASE_S <= clock.now - before <= LEASE_S + 2
    with pytest.raises(BaseInUse, match="has taken it over; this driver stops"):
        holder.confirm()
    holder.release()
    new.confirm()


def test_of_two_that_take_it_at_the_same_moment_one_has_it(store: Store, uri: str) -> None:
    one, two = BaseLease(store), BaseLease(Store(uri))
    write, other_claimed = store.write, list[bool]()

    def between(name: str, data: bytes) -> None:
        """The other comes after the look for others, and before the claim is there."""
        if not other_claimed:
            other_claimed.append(True)
            two.acquire()
        write(name, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", between)
        try:
            one.acquire()
            holders = [one]
        except BaseInUse:
            holders = [two]
    for lease in (one, two):
        if lease in holders:
            lease.confirm()
        else:
            with pytest.raises(BaseInUse):
                lease.confirm()


def test_the_heart_beats_now_and_then_and_not_at_every_turn(store: Store) -> None:
    clock = Clock()
    lease = BaseLease(store, clock)
    lease.acquire()
    (name,) = store.names(FOLDER)
    written = set()
    for _ in range(50):
        clock.now += 1.0
        lease.keep()
        written.add(store.read(f"{FOLDER}/{name}"))
    assert 4 <= len(written) <= 6


def test_a_released_base_can_be_taken_at_once(store: Store, uri: str) -> None:
    lease = BaseLease(store)
    lease.acquire()
    lease.release()
    assert store.names(FOLDER) == []
    BaseLease(Store(uri)).acquire()


def test_a_claim_that_is_damaged_holds_nobody_up(store: Store, uri: str) -> None:
    store.write(f"{FOLDER}/00000007-{'a' * 32}.claim", b"?")
    store.write(f"{FOLDER}/.DS_Store", b"?")
    lease = BaseLease(Store(uri))
    lease.acquire()
    lease.confirm()


def test_a_container_of_the_same_name_is_another_process(store: Store, uri: str) -> None:
    clock = Clock()
    process = lease_module._process()
    document = {"who": "a container", "process": [process[0], "pid:[1]", *process[2:]], "beats": 1}
    store.write(f"{FOLDER}/00000001-{'a' * 32}.claim", seal("lease", document))
    before = clock.now
    watching(uri, clock).acquire()
    assert clock.now - before >= LEASE_S


_HOLDER = """
import sys
from elastream.lanes import Store
from elastream.lanes.lease import BaseLease
BaseLease(Store(sys.stdin.readline().strip())).acquire()
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
            BaseLease(store).acquire()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        # It was a process of this machine, so there is no need to watch it.
        BaseLease(store).acquire()
        with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}'):
            BaseLease(Store(uri)).acquire()
