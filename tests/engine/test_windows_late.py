"""Windows behind slow replicas, slow sources and operators that make the time column: nothing is dropped that is not late."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from flows import finish

from elastream import Topology, groupings, sources
from elastream.engine.clock import VirtualClock
from elastream.engine.hosts.inline_hosts import InlineHosts
from elastream.engine.hosts.link import Event
from elastream.engine.messages import ServeWork, Work
from elastream.testing import LocalEngine, local_engine
from elastream.workload import Arrivals, constant

BEGAN = 1_700_000_000
KEYS = 7
SLOW_S = 2.0
PAUSES = Arrivals((0.0, 1.0, 7.0, 8.0), (0.0, 10.0, 10.0, 20.0))
"""Ten rows in the first second, ten in the eighth."""


class SlowReplica(InlineHosts):
    """Works of replica 1 of the operator `slow` take two seconds of virtual time."""

    runs = 0

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        # Hosts of the runs before it on the same base had these names.
        SlowReplica.runs += 1
        self._came = 100 * SlowReplica.runs
        self._ready_s: dict[int, float] = {}

    def poll(self, timeout_s: float) -> list[Event]:
        now = self._clock.now()
        held = [(host, work) for host, work in self._works if self._ready(work, now) > now]
        self._works = [one for one in self._works if one not in held]
        wait_s = min([timeout_s, *(self._ready_s[work.id] - now for _, work in held)])
        events = super().poll(wait_s)
        self._works += held
        return events

    def _ready(self, work: Work, now: float) -> float:
        if not isinstance(work, ServeWork) or work.operator != "slow" or work.lanes[0].lane != 1:
            return now
        return self._ready_s.setdefault(work.id, now + SLOW_S)


def events(count: int, seconds: float, behind_s: float = 0.0, *, parsed: bool = True) -> Any:
    """Ids with a key, and the time when each happened or, not `parsed`, its milliseconds."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        at_ms = [round((BEGAN - behind_s + int(n) * seconds / count) * 1e3) for n in numbers]
        at: Any = [pd.Timestamp(ms, unit="ms", tz="UTC") for ms in at_ms] if parsed else at_ms
        return {"id": numbers, "key": numbers % KEYS, "at" if parsed else "ms": at}

    columns = "id long, key long, at timestamp" if parsed else "id long, key long, ms long"
    return sources.replay(constant(count / seconds, seconds), columns, make)


def per_second(flow: Topology, *after: str, **how: Any) -> Topology:
    options: dict[str, Any] = {"lateness_s": 0.5, "replicas": (1, 4), "start": 2, "aggregate": {"n": "count()"}}
    flow.key_by("key", after=list(after)).window("second", time="at", every_s=1.0, **(options | how))
    flow.output("out", after="second")
    return flow


def counted(handle: Any) -> Counter[tuple[int, int]]:
    return Counter(
        {(row["key"], int(row["window_start"].timestamp())): row["n"] for row in handle.output("out").to_pylist()}
    )


def expected(count: int, seconds: float, *behind_s: float) -> Counter[tuple[int, int]]:
    return Counter(
        (n % KEYS, int(round((BEGAN - behind + n * seconds / count) * 1e3) / 1e3))
        for behind in behind_s
        for n in range(count)
    )


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def parse(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "at": dt.datetime.fromtimestamp(row["ms"] / 1e3, dt.UTC)}


def test_rows_of_a_replica_that_is_behind_are_not_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "InlineHosts", SlowReplica)
    flow = Topology("slow")
    flow.source("in", events(800, 8.0))
    flow.map("slow", same, after="in", replicas=2, grouping=groupings.fields("key"))
    with LocalEngine(virtual=True).start(per_second(flow, "slow"), str(tmp_path)) as handle:
        finish(handle)
        assert handle.totals("second").late == 0 and counted(handle) == expected(800, 8.0, 0.0)


def test_rows_of_a_source_that_is_an_hour_behind_are_not_late(tmp_path: Path) -> None:
    flow = Topology("two")
    flow.source("a", events(800, 8.0))
    flow.source("b", events(800, 8.0, 3600.0))
    with LocalEngine(virtual=True).start(per_second(flow, "a", "b"), str(tmp_path)) as handle:
        finish(handle)
        assert handle.totals("second").late == 0 and counted(handle) == expected(800, 8.0, 0.0, 3600.0)


@pytest.mark.parametrize("chain", [True, False])
def test_rows_are_not_late_whose_time_is_made_by_an_operator_behind_both_sources(chain: bool, tmp_path: Path) -> None:
    flow = Topology("made")
    flow.source("a", events(800, 8.0, parsed=False))
    flow.source("b", events(800, 8.0, 3600.0, parsed=False))
    flow.map("both", same, after=["a", "b"], replicas=2)
    options: dict[str, Any] = {"chain": True} if chain else {"replicas": 2}
    flow.map("parse", parse, after="both", schema="key long, at timestamp", **options)
    with LocalEngine(virtual=True).start(per_second(flow, "parse"), str(tmp_path)) as handle:
        finish(handle)
        assert handle.totals("second").late == 0 and counted(handle) == expected(800, 8.0, 0.0, 3600.0)


def test_windows_behind_a_map_of_windows_get_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "InlineHosts", SlowReplica)
    flow = Topology("windows")
    flow.source("in", events(800, 8.0))
    flow.key_by("key", after="in").window("first", time="at", every_s=0.5, aggregate={"m": "count()"}, replicas=2)

    def rename(row: dict[str, Any]) -> dict[str, Any]:
        return {"key": row["key"], "at": row["window_start"], "m": row["m"]}

    flow.map("slow", rename, after="first", schema="key long, at timestamp, m long", replicas=2)
    per_second(flow, "slow", aggregate={"n": "sum(m)"}, lateness_s=0.0)
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert handle.totals("second").late == 0 and counted(handle) == expected(800, 8.0, 0.0)


def test_nothing_is_late_through_rescales_and_restarts_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "InlineHosts", SlowReplica)

    def flow() -> Topology:
        two = Topology("two")
        two.source("a", events(900, 9.0))
        two.source("b", events(900, 9.0, 3600.0))
        two.map("slow", same, after="a", replicas=(1, 3), start=2, grouping=groupings.fields("key"))
        return per_second(two, "slow", "b")

    for stop_at in (300, 900, 10**9):
        with LocalEngine(virtual=True).start(flow(), str(tmp_path)) as handle:
            size = 1
            while not handle.await_end(0.002) and handle.totals("second").processed < stop_at:
                size = size % 4 + 1
                handle.scale("second", size)
                handle.scale("slow", min(size, 3))
            if stop_at == 10**9:
                assert handle.totals("second").late == 0 and handle.audit().problems == ()
                assert counted(handle) == expected(900, 9.0, 0.0, 3600.0)


def test_a_source_that_is_silent_holds_back_windows_for_idle_s_only(tmp_path: Path) -> None:
    """Source `b` gives rows in the first second and in the last one, and those are late then."""

    def flow(idle_s: float) -> Topology:
        def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
            at = [pd.Timestamp(BEGAN + int(n) / 10, unit="s", tz="UTC") for n in numbers]
            return {"id": numbers, "key": numbers % KEYS, "at": at}

        pauses = sources.replay(PAUSES, "id long, key long, at timestamp", make)
        two = Topology("silent")
        two.source("a", events(900, 9.0))
        two.source("b", pauses)
        return per_second(two, "a", "b", idle_s=idle_s)

    for idle_s, late in ((2.0, 10), (100.0, 0)):
        with LocalEngine(virtual=True).start(flow(idle_s), str(tmp_path / str(idle_s))) as handle:
            finish(handle)
            assert handle.totals("second").late == late
