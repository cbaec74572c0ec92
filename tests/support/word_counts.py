"""A keyed count of words, in three ways, and what it must come to."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from elastream import Topology, sources
from elastream.workload import constant

Rows = list[dict[str, Any]]


def words(count: int, keys: int, seconds: float = 0.5) -> Topology:
    """A source `in` of ids, each with a word; word number 0 comes most often."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"id": numbers, "word": [word_of(int(n), keys) for n in numbers]}

    replay = sources.replay(constant(count / seconds, seconds), "id long, word string", make)
    return Topology("words").source("in", replay).topology


def word_of(number: int, keys: int) -> str:
    return f"w{number * 7919 % keys if number % 3 else 0}"


def expected(count: int, keys: int) -> Counter[str]:
    return Counter(word_of(n, keys) for n in range(count))


def count_words(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
    state.n += len(rows)
    yield {"word": key, "n": state.n}


def counting(flow: Topology, function: Callable[..., Any] = count_words, *, after: str = "in", **how: Any) -> Topology:
    options = {"state": "n long", "initial": {"n": 0}, "schema": "word string, n long", "replicas": (1, 6), "start": 2}
    by_word = flow.key_by("word", after=after)
    by_word.process("count", function, **{**options, **how}).output("out")
    return flow


def counted(handle: Any) -> Counter[str]:
    return Counter({row["word"]: row["n"] for row in handle.state("count").to_pylist()})


def check_emitted(handle: Any, wanted: Counter[str]) -> None:
    """Every key's counts come in order, and the last one is right."""
    last = Counter[str]()
    for row in handle.output("out").to_pylist():
        assert row["n"] > last[row["word"]], f"{row} after {last[row['word']]}"
        last[row["word"]] = row["n"]
    assert last == wanted


def as_batch(batch: pa.RecordBatch, state: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    new = pa.Table.from_batches([batch]).group_by("word").aggregate([("word", "count")])
    both = new.join(pa.Table.from_batches([state]), "word")
    both = both.set_column(both.column_names.index("n"), "n", pc.add(both["n"], both["word_count"])).select(
        ["word", "n"]
    )
    return both, both


def as_frame(frame: pd.DataFrame, state: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    new = state.assign(n=state["n"] + state["word"].map(frame["word"].value_counts()))
    return new, new
