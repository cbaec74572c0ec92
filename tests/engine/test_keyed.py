"""Keyed operators: the ways to write one, and what each remembers of every key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from flows import finish
from word_counts import Rows, as_batch, as_frame, check_emitted, count_words, counted, counting, expected, words

from elastream.testing import LocalEngine


@pytest.mark.parametrize("mode", ["rows", "arrow", "pandas"])
def test_a_count_is_right_however_it_is_written(mode: Literal["rows", "arrow", "pandas"], tmp_path: Path) -> None:
    functions: dict[str, Any] = {"rows": count_words, "arrow": as_batch, "pandas": as_frame}
    flow = words(3000, 50)
    flow.key_by("word", after="in").process(
        "count", functions[mode], mode=mode, state="n long", initial={"n": 0}, schema="word string, n long", replicas=3
    )
    flow.output("out", after="count")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(3000, 50)
        check_emitted(handle, expected(3000, 50))
        assert handle.audit().problems == ()


def test_a_key_of_several_columns_and_a_state_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    columns = (
        "n long, small byte, text string, raw binary, real double, yes boolean, day date, at timestamp, "
        "price decimal(10,2), many array<string>, named map<string,long>, both struct<a:long,b:string>"
    )

    def remember(key: tuple[int, str], rows: Rows, state: Any) -> list[dict[str, Any]]:
        import datetime as dt
        import decimal

        assert isinstance(key, tuple) and all(row["id"] % 4 == key[0] for row in rows)
        state.n = np.int64(key[0])
        state.small, state.text, state.raw, state.real, state.yes = -7, "ü", b"\xff\x00", 1.5, True
        state.day, state.at = dt.date(2020, 2, 3), dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
        state.price, state.many, state.named = decimal.Decimal("1.25"), [*(state.many or [])[:1], "x"], [("k", 1)]
        state.both = {"a": 1, "b": None}
        return []

    flow = words(200, 3)
    flow.map("cut", lambda row: {"id": row["id"] % 4, "word": row["word"]}, after="in")
    flow.key_by("id", "word", after="cut").process("last", remember, state=columns, replicas=2)
    flow.output("out", after="last")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        found = handle.state("last").to_pylist()
    assert {(row["id"], row["word"]) for row in found} <= {(n, f"w{w}") for n in range(4) for w in range(3)}
    row = found[0]
    assert row["n"] == row["id"] and row["small"] == -7 and row["raw"] == b"\xff\x00" and row["many"][-1] == "x"
    assert row["both"] == {"a": 1, "b": None} and row["named"] == [("k", 1)] and str(row["price"]) == "1.25"
    assert row["at"].year == 2021 and row["day"].day == 3 and row["yes"] is True


def test_a_key_can_be_forgotten_and_begins_anew(tmp_path: Path) -> None:
    def three_times(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        for _ in rows:
            state.n += 1
            if state.n == 3:
                state.remove()
                yield {"word": key, "n": 3}

    flow = counting(words(999, 1), three_times, replicas=1, start=None)
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert handle.output("out").num_rows == 333
        assert handle.state("count").num_rows == 0
