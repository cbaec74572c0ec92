"""Keyed operators of which something is wrong: a tuple, a key, a function, or what was declared."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from flows import finish, ledger_of, numbers, wait_for
from word_counts import Rows, as_batch, check_emitted, count_words, counted, counting, expected, word_of, words

from elastream.cli.main import main
from elastream.errors import OperatorFailed, TopologyError
from elastream.testing import LocalEngine
from elastream.topology import DUE


def test_a_tuple_on_which_the_function_raises_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    def fragile(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        for row in rows:
            state.n += 1
            if row["id"] % 10 == 7:
                raise ValueError(f"seven: {row['id']}")
        yield {"word": key, "n": state.n}

    with LocalEngine().start(counting(words(1000, 20), fragile), str(tmp_path)) as handle:
        finish(handle)
        wanted = Counter(word_of(n, 20) for n in range(1000) if n % 10 != 7)
        assert counted(handle) == wanted
        check_emitted(handle, wanted)
        letters = handle.dead_letters().to_pylist()
        assert handle.audit().problems == ()
    assert len(letters) == 100 and all("ValueError: seven" in letter["error"] for letter in letters)


def test_a_letter_that_is_sent_again_goes_to_the_lane_that_remembers_its_key_now(tmp_path: Path) -> None:
    def fragile(mended: bool) -> Callable[..., Any]:
        def count(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
            if not mended and any(row["id"] % 10 == 7 for row in rows):
                raise ValueError("seven")
            return count_words(key, rows, state)

        return count

    base = str(tmp_path)
    with LocalEngine().start(counting(words(1000, 20), fragile(False)), base) as handle:
        finish(handle)
        assert handle.dead_letters().num_rows == 100
    with LocalEngine().start(
        counting(words(1010, 20, 0.505), fragile(False), replicas=(5, 5), start=None), base
    ) as handle:
        wait_for(lambda: set(ledger_of(handle).owners["count"]) == set(range(5)))
    assert main(["letters", base, "--retry"]) == 0
    with LocalEngine().start(
        counting(words(1010, 20, 0.505), fragile(True), replicas=(5, 5), start=None), base
    ) as handle:
        finish(handle)
        assert counted(handle) == expected(1010, 20)
        assert handle.audit().problems == () and handle.dead_letters().num_rows == 0


def test_a_batch_function_that_raises_sets_aside_the_tuples_it_raises_on(tmp_path: Path) -> None:
    def fragile(batch: pa.RecordBatch, state: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        if 500 in batch.column("id").to_pylist():
            raise ValueError("five hundred")
        return as_batch(batch, state)

    flow = words(1000, 20)
    flow.key_by("word", after="in").process(
        "count", fragile, state="n long", initial={"n": 0}, schema="word string, n long", replicas=2, mode="arrow"
    )
    flow.output("out", after="count")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == Counter(word_of(n, 20) for n in range(1000) if n != 500)
        assert handle.dead_letters().num_rows == 1


def test_keys_that_are_null_or_not_a_number_are_set_aside_with_one_line(tmp_path: Path) -> None:
    flow = words(100, 5)
    flow.map(
        "odd",
        lambda row: {
            "x": None if row["id"] % 10 == 1 else float("nan") if row["id"] % 10 == 2 else row["id"] % 3 + 0.5
        },
        after="in",
        schema="x double",
    )
    flow.key_by("x", after="odd").process(
        "count", lambda key, rows, state: setattr(state, "n", (state.n or 0) + len(rows)), state="n long", replicas=2
    )
    flow.output("out", after="count")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        errors = Counter(letter["error"] for letter in handle.dead_letters().to_pylist())
        assert sum(handle.state("count").column("n").to_pylist()) == 80
        assert handle.audit().problems == ()
    assert errors == {
        "operator 'count': key 'x' is null; filter such tuples out before, or give them a key": 10,
        "operator 'count': key 'x' is not a number; filter such tuples out before, or give them a key": 10,
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda state: setattr(state, "m", 1), "'State' object has no attribute 'm'"),
        (lambda state: setattr(state, "n", "many"), "state: column 'n' is declared int64, and was set to str 'many'"),
        (lambda state: setattr(state, "n", 2**70), "state: column 'n' is declared int64, and was set to int 11805"),
    ],
)
def test_a_state_that_is_not_as_declared_is_said_in_one_line(wrong: Any, said: str, tmp_path: Path) -> None:
    def careless(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        state.n += len(rows)
        if key == "w0":
            wrong(state)
        yield {"word": key, "n": state.n}

    with LocalEngine().start(counting(words(300, 5), careless), str(tmp_path)) as handle:
        finish(handle)
        errors = {letter["error"] for letter in handle.dead_letters().to_pylist()}
        assert counted(handle) == Counter({w: n for w, n in expected(300, 5).items() if w != "w0"})
    assert len(errors) == 1 and said in errors.pop()


def test_a_function_that_never_gives_what_it_declared_stops_the_run(tmp_path: Path) -> None:
    flow = counting(words(300, 5), lambda key, rows, state: [{"wrong": 1}])
    with (
        pytest.raises(
            OperatorFailed, match=r"operator 'count': declared columns \['word', 'n'\], returned \['wrong'\]"
        ),
        LocalEngine().start(flow, str(tmp_path)) as handle,
    ):
        finish(handle)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"key": ["wrd"]}, "keyed 'count': key 'wrd' is no column that enters; did you mean 'word'?"),
        ({"key": []}, "key_by: no column; write key_by('user')"),
        ({"key": ["word", "word"]}, "keyed 'count': a key is one or more columns, each once"),
        ({"key": [["word"]]}, "key_by: expected names of columns, got ['word']"),
        ({"mode": "batch"}, "process 'count': mode must be 'rows', 'arrow' or 'pandas', got 'batch'"),
        ({"state": "n lng"}, "schema 'n lng': expected a type"),
        ({"state": "_n long", "initial": {}}, "keyed 'count': state column '_n': a name that Python can say"),
        ({"state": "word long", "initial": {}}, "keyed 'count': state column 'word'"),
        ({"initial": {"m": 0}}, "keyed 'count': initial has 'm', which is no state column; there are n"),
        ({"ttl_s": 0}, "keyed 'count': ttl_s must be more than 0, got 0"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_declared(how: dict[str, Any], said: str) -> None:
    options: dict[str, Any] = {"key": ["word"], "state": "n long", "initial": {"n": 0}, "schema": "word string, n long"}
    flow = words(10, 5)
    with pytest.raises(TopologyError) as caught:
        options |= how
        keyed = flow.key_by(*options.pop("key"), after="in")
        keyed.process("count", count_words, **options).output("out").topology.build()
    assert said in str(caught.value)


def test_a_tuple_that_ends_its_process_is_set_aside_while_lanes_go_back_to_hosts_that_come_again(
    tmp_path: Path,
) -> None:
    def fragile(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        if any(row["id"] == 137 for row in rows):
            os._exit(3)
        return count_words(key, rows, state)

    flow = counting(words(4000, 200, 1.0), fragile, replicas=6, start=None)
    with LocalEngine(processes=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        assert counted(handle) == Counter(word_of(n, 200) for n in range(4000) if n != 137)
        assert handle.audit().problems == ()
    assert [letter["row"] for letter in letters] == [f'{{"id": 137, "word": "{word_of(137, 200)}"}}']


def test_nothing_of_an_attempt_that_raises_at_its_very_end_is_in_the_state(tmp_path: Path) -> None:
    """A due time that is null raises where latencies are counted, when all operators have run."""

    def number(key: int, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        for row in rows:
            state.n += 1
            yield {"id": row["id"], "n": state.n}

    def without_due(batch: pa.RecordBatch) -> pa.RecordBatch:
        place = batch.schema.get_field_index(DUE)
        null = pa.scalar(None, batch.schema.field(place).type)
        due = pc.if_else(pc.equal(batch.column("id"), 7), null, batch.column(place))
        return batch.set_column(place, batch.schema.field(place), due)

    flow = numbers(20).map("one", lambda row: {"key": 0, **row}, after="in", schema="key long, id long").topology
    flow.key_by("key", after="one").process("a", number, state="n long", initial={"n": 0}, schema="id long, n long")
    flow.batch("b", without_due, after="a", chain=True).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert [letter["row"] for letter in handle.dead_letters().to_pylist()] == ['{"key": 0, "id": 7}']
        assert sorted(handle.output("out").column("n").to_pylist()) == list(range(1, 20))
        assert handle.audit().problems == ()
