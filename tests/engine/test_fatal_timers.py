"""Timers that end their process: put aside with their key, found by few deaths, and nobody else's tuple or timer is."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from flows import finish
from hypothesis import given
from hypothesis import strategies as st

from elastream import ErrorSettings, Settings, Topology, sources
from elastream.engine.driver.dispatch.suspects import MOST_DEATHS, Suspects, TimerSuspect
from elastream.errors import OperatorFailed
from elastream.lanes import LaneId
from elastream.testing import LocalEngine
from elastream.workload import constant

LANE = LaneId("remember", 0)
BEGAN = 1_700_000_000
KEYS = 40
FATAL = 3

Rows = list[dict[str, Any]]


def remembering(folder: Path, count: int, seconds: float, **how: Any) -> Topology:
    """Every key is woken once, when its first tuple is ten seconds old; one of them ends its process then."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"key": numbers % KEYS, "at": [pd.Timestamp(BEGAN + int(n), unit="s", tz="UTC") for n in numbers]}

    def remember(key: int, rows: Rows, state: Any) -> Rows:
        if not state.n:
            state.wake_at_event(rows[0]["at"].timestamp() + 10)
        state.n += len(rows)
        return []

    def wake(key: int, at_s: float, state: Any) -> Rows:
        state.woken += 1
        if key == FATAL:
            with open(folder / "deaths", "a", encoding="utf-8") as file:
                file.write(f"{at_s}\n")
            os._exit(3)
        return [{"key": key}]

    options: dict[str, Any] = {"replicas": 2, "on_timer": wake, **how}
    flow = Topology("fatal")
    flow.source("in", sources.replay(constant(count / seconds, seconds), "key long, at timestamp", make))
    flow.key_by("key", after="in").process(
        "remember",
        remember,
        state="n long, woken long",
        initial={"n": 0, "woken": 0},
        schema="key long",
        event_time="at",
        **options,
    )
    flow.output("out", after="remember")
    return flow


def test_a_timer_that_ends_its_process_goes_to_the_dead_letters_and_all_else_goes_on(tmp_path: Path) -> None:
    with LocalEngine(processes=True).start(remembering(tmp_path, 4000, 2.0), str(tmp_path / "base")) as handle:
        finish(handle)
        letters, audit = handle.dead_letters().to_pylist(), handle.audit()
        state = {row["key"]: (row["n"], row["woken"]) for row in handle.state("remember").to_pylist()}
        woken = Counter(handle.output("out").column("key").to_pylist())
    # Every tuple was counted, every other key was woken once, and the fatal one is as it was.
    assert state == {key: (100, int(key != FATAL)) for key in range(KEYS)}
    assert woken == Counter(key for key in range(KEYS) if key != FATAL)
    assert [(letter["operator"], letter["row"]) for letter in letters] == [("remember", f'{{"key": {FATAL}}}')]
    assert "ended, three times in a row" in letters[0]["error"] and audit.problems == ()
    deaths = (tmp_path / "deaths").read_text().splitlines()
    assert set(deaths) == {f"{BEGAN + FATAL + 10.0}"} and 1 + MOST_DEATHS <= len(deaths) <= 6


def test_a_timer_that_ends_its_process_stops_a_run_that_is_to_stop_on_errors(tmp_path: Path) -> None:
    engine = LocalEngine(processes=True)
    with (
        pytest.raises(
            OperatorFailed, match=r"operator 'remember' replica \d: the process .* on tuple {\"key\": 3}; mend"
        ),
        engine.start(
            remembering(tmp_path, 400, 0.2),
            str(tmp_path / "base"),
            settings=Settings(errors=ErrorSettings(on_error="stop")),
        ) as handle,
    ):
        finish(handle)


@given(st.sets(st.integers(0, 299), max_size=3), st.booleans())
def test_every_key_that_ends_its_process_is_buried_and_no_other(poison: set[int], tuples_too: bool) -> None:
    suspects, due, buried, deaths = Suspects(), list(range(300)), list[int](), 0
    while due:
        alone = LANE in suspects
        if suspects.get(LANE) is not None:
            # Tuples are tried first, without keys: these are innocent.
            suspects.served(LANE, 10)
            continue
        keys = suspects.keys_of(LANE)
        if alone and keys is None:
            keys = TimerSuspect(0.0, None, ())
            suspects.suspect_keys(LANE, keys)
        some = due if keys is None else due[: keys.keys]
        if suspects.condemned(LANE):
            buried += some
        elif poison.intersection(some):
            deaths += 1
            rows = 10 if tuples_too and not alone else 0
            suspects.host_died(LANE, 0, rows, alone=alone, whole=False, wakes=True)
            continue
        due = due[len(some) :]
        suspects.woken(LANE, left=bool(due))
    assert buried == sorted(poison) and not suspects
    # One with others, one per eighth of 64, and three of the key itself.
    assert deaths <= 6 * len(poison)


def test_tuples_of_a_lane_without_timers_are_suspected_as_before() -> None:
    suspects = Suspects()
    suspects.host_died(LANE, 0, 0, alone=False, whole=False)
    assert not suspects
    suspects.host_died(LANE, 0, 5, alone=False, whole=False, wakes=False)
    assert LANE in suspects and not suspects.is_waking(LANE)
    suspects.served(LANE, 5)
    assert not suspects
