"""Timers at times that are no times: the tuple or timer that asks for one fails, and the run goes on."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flows import finish, numbers

from elastream import Stream, Topology, sources
from elastream.testing import LocalEngine
from elastream.workload import constant

Row = dict[str, Any]

BAD = 7

IMPOSSIBLE = [math.nan, math.inf, -math.inf, 1e18, -1e18, 1e300, 253_402_300_801.0]


def woken(flow: Stream, base: Path) -> tuple[Counter[int], list[Row]]:
    """The keys that were woken, and the dead letters."""
    with LocalEngine(virtual=True).start(flow.output("out"), str(base)) as handle:
        finish(handle)
        assert handle.audit().problems == ()
        return Counter(handle.output("out").column("id").to_pylist()), handle.dead_letters().to_pylist()


def wake(key: int, at_s: float, state: Any) -> Iterator[Row]:
    yield {"id": key}


@pytest.mark.parametrize("at_s", IMPOSSIBLE)
@pytest.mark.parametrize("by_event", [False, True])
def test_a_tuple_that_sets_an_impossible_timer_is_a_dead_letter(at_s: float, by_event: bool, tmp_path: Path) -> None:
    def remember(key: int, rows: list[Row], state: Any) -> None:
        (state.wake_at_event if by_event else state.wake_at)(at_s if key == BAD else 1.0)

    flow = Topology("test")
    flow.source(
        "in", sources.replay(constant(40, 0.5), "id long, at timestamp", lambda n: {"id": n, "at": n * 1_000_000})
    )
    keyed = flow.key_by("id", after="in").process(
        "a", remember, state="n long", schema="id long", on_timer=wake, event_time="at", replicas=2
    )
    keys, letters = woken(keyed, tmp_path)
    assert keys == {n: 1 for n in range(20) if n != BAD}
    assert len(letters) == 1 and f'"id": {BAD}' in letters[0]["row"]
    assert letters[0]["error"].startswith(f"ValueError: a timer is at a time between the years 1 and 9999, got {at_s}")


@pytest.mark.parametrize("at_s", IMPOSSIBLE)
def test_a_timer_that_sets_an_impossible_timer_is_a_dead_letter_with_its_key(at_s: float, tmp_path: Path) -> None:
    def remember(key: int, rows: list[Row], state: Any) -> None:
        state.wake_at(1.0)

    def again(key: int, now_s: float, state: Any) -> Iterator[Row]:
        if key == BAD:
            state.wake_at(at_s)
        yield {"id": key}

    keyed = (
        numbers(20).key_by("id", after="in").process("a", remember, state="n long", schema="id long", on_timer=again)
    )
    keys, letters = woken(keyed, tmp_path)
    assert keys == {n: 1 for n in range(20) if n != BAD}
    assert [letter["row"] for letter in letters] == [f'{{"id": {BAD}}}']


def test_timers_far_away_are_taken_when_they_come(tmp_path: Path) -> None:
    """Seconds in the year 9000 are floats that are 30 us apart, and timers are kept in microseconds."""
    times = np.random.default_rng(1).uniform(200e9, 253e9, 50)

    def remember(key: int, rows: list[Row], state: Any) -> None:
        state.wake_at_event(float(times[key]))

    flow = Topology("test")
    flow.source("in", sources.replay(constant(100, 0.5), "id long, at timestamp", lambda n: {"id": n, "at": n}))
    keyed = flow.key_by("id", after="in").process(
        "a", remember, state="n long", schema="id long", on_timer=wake, event_time="at"
    )
    keys, letters = woken(keyed, tmp_path)
    assert keys == dict.fromkeys(range(50), 1) and letters == []
