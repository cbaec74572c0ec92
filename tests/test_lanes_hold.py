"""The hold: one driver at a time has the base."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from elastream.errors import BaseInUse
from elastream.lanes import Hold, Store

_HOLDER = """
import sys
from elastream.lanes import Hold, Store
hold = Hold(Store(sys.argv[1]))
hold.take()
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
        Hold(store).take()
    assert f'"pid": {holder.pid}' in str(caught.value)
    assert str(store) in str(caught.value)
    assert "stop it, or choose another base" in str(caught.value)


def test_a_base_is_free_as_soon_as_its_driver_was_killed(store: Store, holder: "subprocess.Popen[str]") -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    hold = Hold(store)
    hold.take()
    with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}'):
        Hold(store).take()
    hold.release()


def test_a_released_base_can_be_taken_again(store: Store) -> None:
    first, second = Hold(store), Hold(store)
    first.take()
    first.renew()
    first.release()
    second.take()
    with pytest.raises(BaseInUse):
        first.take()
    second.release()


def test_a_refused_driver_does_not_wipe_out_who_holds_the_base(store: Store) -> None:
    hold = Hold(store)
    hold.take()
    for _ in range(2):
        with pytest.raises(BaseInUse, match=str(os.getpid())):
            Hold(store).take()
    hold.release()
