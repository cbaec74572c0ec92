"""Keyed operators across restarts: they go on with what they remembered, or are refused with one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flows import finish, wait_for
from word_counts import Rows, check_emitted, count_words, counted, counting, expected, words

from elastream import Settings, StateSettings, Topology
from elastream.errors import BaseUnusable, SettingError
from elastream.lanes import Store, audit
from elastream.testing import LocalEngine


def run_until(flow: Topology, base: Path, processed: int, **how: Any) -> None:
    with LocalEngine().start(flow, str(base), **how) as handle:
        wait_for(lambda: handle.totals("count").processed >= processed)


def test_a_run_goes_on_with_what_it_remembered(tmp_path: Path) -> None:
    for processed in (500, 1500, 3000):
        run_until(counting(words(6000, 80, 3.0)), tmp_path, processed)
    with LocalEngine(processes=True).start(counting(words(6000, 80, 3.0)), str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(6000, 80)
        check_emitted(handle, expected(6000, 80))


def test_a_new_column_is_followed_and_anything_else_is_refused_with_one_line(tmp_path: Path) -> None:
    def with_more(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        assert state.first is not None
        state.n += len(rows)
        state.first = min(state.first, rows[0]["id"])
        yield {"word": key, "n": state.n}

    run_until(counting(words(4000, 30, 2.0)), tmp_path, 500)
    for how in ({"state": "n string", "initial": {}}, {"state": "m long", "initial": {"m": 0}}, {"key": "id"}):
        flow = words(4000, 30, 2.0)
        options: dict[str, Any] = {"key": "word", "state": "n long", "initial": {"n": 0}, "replicas": (1, 6), **how}
        keyed = flow.key_by(options.pop("key"), after="in")
        keyed.process("count", count_words, schema="word string, n long", **options).output("out")
        with pytest.raises(
            SettingError, match=r"'count' remembers n int64 of every word string, and now .*discard=\('count',\)"
        ):
            LocalEngine().start(flow, str(tmp_path))
    plain = words(4000, 30, 2.0)
    plain.map(
        "count", lambda row: {"word": row["word"], "n": 1}, after="in", schema="word string, n long", replicas=(1, 6)
    )
    with pytest.raises(SettingError, match="this topology has no keyed operator 'count'"):
        LocalEngine().start(plain.output("out", after="count"), str(tmp_path))
    more = counting(words(4000, 30, 2.0), with_more, state="first long, n long", initial={"n": 0, "first": 10**9})
    with LocalEngine().start(more, str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(4000, 30)
        assert handle.dead_letters().num_rows == 0
    again = counting(words(4500, 30, 2.25), state="n string", initial={"n": ""}, function=lambda key, rows, state: [])
    with LocalEngine().start(again, str(tmp_path), discard=("count",)) as handle:
        finish(handle)
        assert handle.state("count").column("n").to_pylist() == [""] * handle.state("count").num_rows


def remember_much(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
    state.n += len(rows)
    state.text = key * 200
    yield {"word": key, "n": state.n}


def test_a_host_that_would_remember_more_than_it_may_stops_the_run_and_a_larger_bound_goes_on(tmp_path: Path) -> None:
    def flow() -> Topology:
        columns: dict[str, Any] = {"state": "n long, text string", "initial": {"n": 0, "text": ""}}
        return counting(words(12_000, 5000, 2.0), remember_much, **columns)

    def bounded(mebibytes: int) -> Settings:
        return Settings(state=StateSettings(bytes_per_host=mebibytes << 20))

    for _ in range(2):
        with (
            pytest.raises(
                BaseUnusable,
                match=r"^state of 'count': this host .* StateSettings\(bytes_per_host=2_097_152\) .* larger bound",
            ),
            LocalEngine(hosts=2).start(flow(), str(tmp_path), settings=bounded(2)) as handle,
        ):
            finish(handle)
        # What it has is whole, and it does not go on with the same bound.
        assert audit(Store(str(tmp_path))).problems == ()
    with LocalEngine(hosts=2).start(flow(), str(tmp_path), settings=bounded(64)) as handle:
        finish(handle)
        assert counted(handle) == expected(12_000, 5000)
        check_emitted(handle, expected(12_000, 5000))


def test_a_bound_in_which_no_store_fits_is_refused() -> None:
    with pytest.raises(
        SettingError, match=r"bytes_per_host must be a whole number, 1,048,576 or more, got 1000; None means no limit"
    ):
        Settings(state=StateSettings(bytes_per_host=1000))
