"""Timers and windows of keyed operators: woken when their time has come, once, through rescales, kills and restarts."""

import datetime as dt
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
import pandas as pd
import pytest
from flows import finish, wait_for
from hypothesis import given
from hypothesis import strategies as st
from routes import PATIENT

from elastream import Topology, sources
from elastream.errors import TopologyError
from elastream.state.store import CLOCK, WATERMARK, StateStore
from elastream.testing import LocalEngine
from elastream.topology.windows import Windows, windows_of
from elastream.workload import constant

BEGAN = 1_700_000_000
KEYS = 7


def events(count: int, seconds: float = 0.5, *, apart_s: float = 1.0, mixed: int = 0) -> Topology:
    """A source `in` of ids with a key and the time each happened; `mixed`: some happened up to so many places earlier."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"id": numbers, "key": numbers % KEYS, "at": [moment(int(n), apart_s, mixed) for n in numbers]}

    replay = sources.replay(constant(count / seconds, seconds), "id long, key long, at timestamp", make)
    return Topology("events").source("in", replay).topology


def moment(number: int, apart_s: float = 1.0, mixed: int = 0) -> pd.Timestamp:
    place = number - (number * 31 % (mixed + 1) if number > mixed else 0)
    return pd.Timestamp(BEGAN + place * apart_s, unit="s", tz="UTC")


def minute(number: int, mixed: int = 0) -> int:
    return int(moment(number, mixed=mixed).timestamp()) // 60 * 60


def per_minute(flow: Topology, **how: Any) -> Topology:
    options = {"every_s": 60.0, "aggregate": {"n": "count()", "last": "max(id)"}, "replicas": (1, 5), "start": 2}
    flow.key_by("key", after="in").window("minute", time="at", **{**options, **how})
    flow.output("out", after="minute")
    return flow


def found_in(handle: Any) -> Counter[tuple[int, int]]:
    """By key and start of the window, how many; each must be there once."""
    found = Counter[tuple[int, int]]()
    for row in handle.output("out").to_pylist():
        place = row["key"], int(row["window_start"].timestamp())
        assert place not in found, f"{place} came twice"
        found[place] = row["n"]
    return found


def expected(count: int, mixed: int = 0) -> Counter[tuple[int, int]]:
    return Counter((n % KEYS, minute(n, mixed)) for n in range(count))


# -- windows


@pytest.mark.parametrize("mixed", [0, 50])
def test_a_window_comes_once_with_all_that_is_in_it(mixed: int, tmp_path: Path) -> None:
    with LocalEngine().start(per_minute(events(5000, mixed=mixed), lateness_s=3600.0), str(tmp_path)) as handle:
        finish(handle)
        assert found_in(handle) == expected(5000, mixed)
        assert handle.state("minute").num_rows == 0 and handle.audit().problems == ()


def test_windows_leave_while_the_stream_flows_and_not_before_the_watermark_has_passed_them(tmp_path: Path) -> None:
    with LocalEngine(virtual=True).start(per_minute(events(3000, 30.0), lateness_s=60.0), str(tmp_path)) as handle:
        early, newest = [], BEGAN
        while not handle.await_end(0.0):
            newest = max(newest, BEGAN + handle.totals("minute").processed)
            early += [row for row in handle.output("out").to_pylist() if row["window_end"].timestamp() > newest + 300]
            time.sleep(0.01)
        assert early == [] and found_in(handle) == expected(3000)


def test_what_is_later_than_the_watermark_allows_is_dropped_and_counted(tmp_path: Path) -> None:
    def late(row: dict[str, Any]) -> dict[str, Any]:
        hour = dt.timedelta(hours=1)
        return {**row, "at": row["at"] - hour if row["id"] >= 2000 and row["id"] % 10 == 3 else row["at"]}

    flow = events(3000, 3.0).map("late", late, after="in").topology
    flow.key_by("key", after="late").window(
        "minute", time="at", every_s=60.0, lateness_s=30.0, aggregate={"n": "count()"}
    )
    flow.output("out", after="minute")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert handle.totals("minute").late == 100
        wanted = Counter((n % KEYS, minute(n)) for n in range(3000) if n < 2000 or n % 10 != 3)
        assert found_in(handle) == wanted
        audit = handle.audit()
    assert audit.problems == () and audit.dropped == 100


def test_windows_are_right_through_rescales_kills_and_restarts(tmp_path: Path) -> None:
    count, chance = 12_000, random.Random(3)

    def flow() -> Topology:
        return per_minute(events(count, 5.0), lateness_s=120.0)

    with LocalEngine().start(flow(), str(tmp_path)) as handle:
        wait_for(lambda: handle.totals("minute").processed > 2000)
    kills = 0
    with LocalEngine(processes=True).start(flow(), str(tmp_path)) as handle:
        while not handle.await_end(chance.uniform(0.0, 0.15)):
            handle.scale("minute", chance.randint(1, 5))
            hosts = handle.status.hosts
            if kills < 2 and len(hosts) > 1 and handle.totals("minute").processed > 3000 * (kills + 1):
                kills += 1
                with suppress(ProcessLookupError):
                    os.kill(hosts[0].pid, signal.SIGKILL)
        assert found_in(handle) == expected(count)
        assert handle.audit().problems == () and handle.totals("minute").late == 0
    assert kills >= 1


def test_windows_behind_windows_get_all_of_them_at_the_end(tmp_path: Path) -> None:
    flow = events(4000)
    flow.key_by("key", after="in").window("minute", time="at", every_s=60.0, aggregate={"n": "count()"}, replicas=2)
    flow.key_by("key", after="minute").window(
        "hour", time="window_end", every_s=3600.0, aggregate={"n": "sum(n)", "m": "count()"}
    )
    flow.output("out", after="hour")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        rows = handle.output("out").to_pylist()
        assert handle.totals("hour").late == 0
    assert sum(row["n"] for row in rows) == 4000
    assert sum(row["m"] for row in rows) == len(expected(4000))


def made(**how: Any) -> Windows:
    import pyarrow as pa

    entering = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("x", pa.int64()), ("y", pa.float64())])
    options: dict[str, Any] = {"every_s": None, "length_s": None, "session_s": None}
    aggregate = {
        "n": "count()",
        "xs": "count(x)",
        "sum": "sum(x)",
        "low": "min(y)",
        "high": "max(x)",
        "mean": "mean(x)",
    }
    return windows_of("w", ("k",), "at", entering, **{**options, "aggregate": aggregate, **how})


class Remembered:
    """A key's state, as windows see it."""

    def __init__(self) -> None:
        self.windows: Any = None
        self.timers: set[float] = set()

    def wake_at_event(self, at_s: float) -> None:
        self.timers.add(at_s)

    def remove(self) -> None:
        self.windows = None


ROWS = st.lists(st.tuples(st.integers(0, 200), st.none() | st.integers(-5, 5)), min_size=1, max_size=30)


def fed(windows: Windows, rows: list[tuple[int, int | None]]) -> dict[tuple[float, float], dict[str, Any]]:
    state = Remembered()
    for at, x in rows:
        when = dt.datetime.fromtimestamp(at, dt.UTC)
        assert windows.add(1, [{"k": 1, "at": when, "x": x, "y": None if x is None else x / 2}], state) == []
    out: dict[tuple[float, float], dict[str, Any]] = {}
    while state.timers:
        at_s = min(state.timers)
        state.timers.remove(at_s)
        for row in windows.close(1, at_s, state):
            place = row["window_start"].timestamp(), row["window_end"].timestamp()
            assert place not in out and place[1] <= at_s
            out[place] = row
    assert state.windows is None
    return out


@PATIENT
@given(rows=ROWS, every=st.integers(1, 20), times=st.integers(1, 4))
def test_every_row_is_in_all_the_windows_that_it_belongs_to(
    rows: list[tuple[int, int | None]], every: int, times: int
) -> None:
    length = every * times
    found = fed(made(every_s=float(every), length_s=float(length)), rows)
    starts = {start for at, _ in rows for start in range(-length, 201, every) if start <= at < start + length}
    assert {(start, start + length) for start in starts} == set(found)
    for (start, end), row in found.items():
        inside = [x for at, x in rows if start <= at < end]
        known = [x for x in inside if x is not None]
        assert row["n"] == len(inside) and row["xs"] == len(known)
        assert row["sum"] == (sum(known) if known else None) and row["high"] == max(known, default=None)
        assert row["low"] == (min(known) / 2 if known else None)
        assert row["mean"] == (pytest.approx(sum(known) / len(known)) if known else None)


@PATIENT
@given(rows=ROWS, gap=st.integers(1, 20))
def test_a_session_ends_when_a_key_has_not_come_for_a_while(rows: list[tuple[int, int | None]], gap: int) -> None:
    found = fed(made(session_s=float(gap)), rows)
    sessions: list[list[int]] = []
    for at in sorted(at for at, _ in rows):
        if sessions and at <= sessions[-1][-1] + gap:
            sessions[-1].append(at)
        else:
            sessions.append([at])
    assert {place: row["n"] for place, row in found.items()} == {(s[0], s[-1] + gap): len(s) for s in sessions}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "window 'minute': give every_s=60, every_s=10 with length_s=60, or session_s=30"),
        ({"every_s": 60.0, "session_s": 3.0}, "window 'minute': give every_s=60"),
        ({"every_s": -1.0}, "window 'minute': every_s must be more than 0, got -1.0"),
        (
            {"every_s": 60.0, "length_s": 10.0},
            "length_s 10.0 is shorter than every_s 60.0; some tuples would be in no window",
        ),
        ({"every_s": 60.0, "aggregate": {}}, "window 'minute': nothing is computed"),
        ({"every_s": 60.0, "aggregate": {"n": "median(id)"}}, "aggregate 'n': 'median(id)'; write it as 'count()'"),
        ({"every_s": 60.0, "aggregate": {"n": "sum(idd)"}}, "sum(idd): no column 'idd'; there are id, key, at"),
        ({"every_s": 60.0, "aggregate": {"n": "sum(at)"}}, "sum(at): 'at' is timestamp[us, tz=UTC], not a number"),
        ({"every_s": 60.0, "time": "id"}, "event_time 'id' is no timestamp that enters"),
        ({"every_s": 60.0, "key": "kee"}, "window 'minute': no column 'kee' enters; there are id, key, at"),
        ({"every_s": 60.0, "after": "nobody"}, "window 'minute': comes after 'nobody', which is not declared yet"),
    ],
)
def test_windows_that_cannot_be_are_refused_when_they_are_declared(how: dict[str, Any], said: str) -> None:
    options: dict[str, Any] = {"after": "in", "key": "key", "time": "at", "aggregate": {"n": "count()"}}
    with pytest.raises(TopologyError) as caught:
        options |= how
        keyed = events(10).key_by(options.pop("key"), after=options.pop("after"))
        keyed.window("minute", **options).output("out").topology.build()
    assert said in str(caught.value)


# -- timers


def test_a_key_is_woken_by_the_clock_once_for_every_time_it_asked_for(tmp_path: Path) -> None:
    def remember(key: int, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
        for row in rows:
            state.n += 1
            if row["id"] < 2 * KEYS:
                state.wake_at(row["at"] + dt.timedelta(seconds=20))
        return []

    def wake(key: int, at_s: float, state: Any) -> Iterator[dict[str, Any]]:
        state.n += 100
        yield {"key": key, "at": dt.datetime.fromtimestamp(at_s, dt.UTC), "n": state.n}

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        # Virtual time begins there.
        at = [pd.Timestamp(BEGAN + int(n) // KEYS, unit="s", tz="UTC") for n in numbers]
        return {"id": numbers, "key": numbers % KEYS, "at": at}

    replay = sources.replay(constant(KEYS, 100.0), "id long, key long, at timestamp", make)
    flow = Topology("timers")
    flow.source("in", replay)
    flow.key_by("key", after="in").process(
        "remember",
        remember,
        state="n long",
        initial={"n": 0},
        schema="key long, at timestamp, n long",
        on_timer=wake,
        replicas=3,
    ).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        rows = handle.output("out").to_pylist()
        assert handle.state("remember").column("n").to_pylist() == [300] * KEYS
    assert Counter(row["key"] for row in rows) == dict.fromkeys(range(KEYS), 2)


def test_a_timer_that_raises_goes_to_the_dead_letters_with_its_key_and_does_not_come_again(tmp_path: Path) -> None:
    def remember(key: int, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
        state.n += len(rows)
        state.wake_at_event(BEGAN + 10)
        return []

    def wake(key: int, at_s: float, state: Any) -> Iterator[dict[str, Any]]:
        state.n = -1
        if key == 3:
            raise ValueError("three")
        yield {"key": key, "n": state.n}

    flow = events(70)
    flow.key_by("key", after="in").process(
        "remember",
        remember,
        state="n long",
        initial={"n": 0},
        schema="key long, n long",
        on_timer=wake,
        event_time="at",
        replicas=2,
    ).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        state = {row["key"]: row["n"] for row in handle.state("remember").to_pylist()}
        assert handle.audit().problems == ()
    assert [letter["row"] for letter in letters] == ['{"key": 3}'] * len(letters) and letters
    assert state[3] >= 10 and all(letter["error"].startswith("ValueError: three") for letter in letters)


def test_a_key_that_was_forgotten_before_its_time_came_is_not_woken(tmp_path: Path) -> None:
    def remember(key: int, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
        state.n += len(rows)
        if key == 0:
            state.wake_at_event(BEGAN + 3 * KEYS)
        return []

    flow = (
        events(10 * KEYS, 10.0 * KEYS)
        .filter("once", lambda row: row["key"] != 0 or row["id"] == 0, after="in")
        .topology
    )
    flow.key_by("key", after="once").process(
        "remember",
        remember,
        state="n long",
        initial={"n": 0},
        schema="key long",
        on_timer=lambda key, at_s, state: [{"key": key}],
        event_time="at",
        ttl_s=15.0,
    ).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert handle.output("out").num_rows == 0
        assert sorted(handle.state("remember").column("key").to_pylist()) == list(range(1, KEYS))


def test_a_key_that_is_to_be_woken_by_nobody_is_said_in_one_line(tmp_path: Path) -> None:
    flow = events(20)
    flow.key_by("key", after="in").process("remember", lambda key, rows, state: state.wake_at(5), state="n long")
    flow.output("out", after="remember")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        errors = {letter["error"].split(" at ")[0] for letter in handle.dead_letters().to_pylist()}
    assert errors == {"ValueError: state: is to be woken, but nobody is there to do it; declare on_timer="}


TIMED = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 127]),
        st.sampled_from([b"a", b"b", b"k" * 600]),
        st.none() | st.tuples(st.lists(st.integers(-9, 9), max_size=3), st.lists(st.integers(-9, 9), max_size=3)),
    ),
    max_size=25,
)


@PATIENT
@given(changes=TIMED, groups=st.sets(st.sampled_from([0, 1, 127])), until=st.integers(-9, 9))
def test_a_store_knows_whose_time_has_come(changes: list[Any], groups: set[int], until: int) -> None:
    import msgspec

    store = StateStore(["a"], timers_of={"a": lambda data: msgspec.msgpack.decode(data)})
    known: dict[tuple[int, bytes], Any] = {}
    for group, key, timers in changes:
        store.write("a", [(group, key, None if timers is None else msgspec.msgpack.encode(timers))])
        known.pop((group, key), None)
        if timers is not None:
            known[group, key] = timers
    for kind in (CLOCK, WATERMARK):
        mine = sorted({(float(at), g, k) for (g, k), timers in known.items() if g in groups for at in timers[kind]})
        assert store.due("a", kind, sorted(groups), until) == [one for one in mine if one[0] <= until]
        assert store.first_timer("a", kind, sorted(groups)) == (mine[0][0] if mine else None)
    store.replace_group("a", 1, [(b"new", msgspec.msgpack.encode(([1], [2])))])
    assert store.due("a", CLOCK, [1], 99) == [(1.0, 1, b"new")]
    store.forget("a", [0, 1])
    assert store.due("a", WATERMARK, [0, 1], 99) == []
    store.close()
