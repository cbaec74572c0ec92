"""Order: the tuples of a key are served one after another in the order they came, also while replicas change and hosts die."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flows import each_once, finish, ledger_of

from elastream import Topology, groupings, sources
from elastream.engine.handle import RunHandle
from elastream.errors import SettingError
from elastream.routing import hashing
from elastream.testing import LocalEngine
from elastream.workload import constant

KEYS = 40


def keyed_numbers(count: int, seconds: float) -> Topology:
    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"id": numbers, "key": [f"k{n % KEYS}" for n in numbers]}

    return (
        Topology("order")
        .source("in", sources.replay(constant(count / seconds, seconds), "id long, key string", make))
        .topology
    )


def linger(row: dict[str, Any]) -> dict[str, Any]:
    """Some keys take longer than others, so that lanes are not equally far."""
    time.sleep(0.0001 * (row["id"] % KEYS % 7))
    return row


def rescale_at_random(handle: Any, operator: str, most: int, chance: random.Random) -> Iterator[int]:
    """Until the run is over; gives how often so far."""
    times = 0
    while handle.active:
        handle.scale(operator, chance.randint(1, most))
        times += 1
        yield times
        handle.await_end(chance.uniform(0.0, 0.06))


def check_order(handle: RunHandle, count: int) -> None:
    rows = handle.output("out").to_pylist()
    assert Counter(row["id"] for row in rows) == each_once(count)
    for key in range(KEYS):
        found = [row["id"] for row in rows if row["key"] == f"k{key}"]
        assert found == sorted(found), f"k{key} is out of order"


@pytest.mark.parametrize("kills", [0, 4])
def test_a_key_stays_in_order_while_replicas_change_and_hosts_die(kills: int, tmp_path: Path) -> None:
    count, chance = 6000, random.Random(kills)
    flow = keyed_numbers(count, 3.0)
    flow.map("work", linger, after="in", grouping=groupings.fields("key"), replicas=(1, 6), start=2)
    flow.output("out", after="work")
    with LocalEngine(processes=True).start(flow, str(tmp_path)) as handle:
        left = kills
        for times in rescale_at_random(handle, "work", 6, chance):
            hosts = handle.status.hosts
            if left and hosts and times % 8 == 0:
                left -= 1
                with suppress(ProcessLookupError):
                    os.kill(hosts[0].pid, signal.SIGKILL)
        finish(handle)
        check_order(handle, count)
        audit = handle.audit()
        owners = Counter(ledger_of(handle).owners["work"])
    assert times > 10 and left == 0
    assert audit.problems == () and audit.duplicates == 0
    assert max(owners.values()) - min(owners.values()) <= 1


def test_a_rescale_moves_what_waits_in_the_next_turn_and_a_lane_that_is_switched_off_keeps_nothing(
    tmp_path: Path,
) -> None:
    count = 2000
    flow = keyed_numbers(count, 0.01)
    flow.map("work", linger, after="in", grouping=groupings.fields("key"), replicas=(1, 8), start=8)
    flow.output("out", after="work")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        handle.scale("work", 1)
        finish(handle)
        check_order(handle, count)
        assert set(ledger_of(handle).owners["work"]) == {0}
        consumed = {
            lane.lane: queue.consumed for lane, queue in ledger_of(handle).lanes.items() if lane.operator == "work"
        }
    assert consumed[0] > count * 0.9, "what waited was served where it was"


def test_a_run_goes_on_with_the_owners_it_had_and_evens_them_out(tmp_path: Path) -> None:
    def flow(most: int) -> Topology:
        made = keyed_numbers(4000, 1.0)
        made.map("work", linger, after="in", grouping=groupings.fields("key"), replicas=(1, most), start=min(6, most))
        made.output("out", after="work")
        return made

    with LocalEngine().start(flow(6), str(tmp_path)) as handle:
        until = time.monotonic() + 30
        while not handle.totals("work").processed and time.monotonic() < until:
            time.sleep(0.01)
    before = ledger_of(handle).owners["work"]
    assert set(before) == set(range(6))
    with LocalEngine().start(flow(3), str(tmp_path)) as handle:
        finish(handle)
        check_order(handle, 4000)
        after = ledger_of(handle).owners["work"]
    assert set(after) == {0, 1, 2} and sum(a != b for a, b in zip(before, after, strict=True)) == before.count(
        3
    ) + before.count(4) + before.count(5)


def test_a_base_whose_keys_fall_into_groups_by_another_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = keyed_numbers(100, 0.1)
    flow.map("work", linger, after="in", grouping=groupings.fields("key"), replicas=2).output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
    monkeypatch.setattr(hashing, "VERSION", 2)
    with pytest.raises(SettingError, match="by version 1 of the hash, and this Elastream has version 2; go on with"):
        LocalEngine().start(flow, str(tmp_path))
