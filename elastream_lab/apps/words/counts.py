"""Operators that read, split and count words. Batches enter and leave; what is known of words is keyed state.

A count is exact whatever grouping leads to it. With `fields` all tuples of a word meet in one replica, which counts them in
its state; a word that `redirection` moves takes its state along, and one that it splits is added up where it lives. Every other
grouping sends a word to several replicas: each gives the counts of what it was handed, and an operator `total` behind them,
keyed by word, adds them up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from elastream.topology import DUE, Stream, parse_schema
from elastream_lab.apps.common.service import Service
from elastream_lab.apps.words.words_of_text import words_of

WORDS = parse_schema("word string")
COUNTS = parse_schema("word string, count long")
STORED = parse_schema("base string, word string, count long")
"""Every base counts anew, also in a database that knows others."""

"""Groupings by which a key is in one replica at a time."""

STATE: dict[str, Any] = {"state": "total long", "initial": {"total": 0}}


def split_words(batch: pa.RecordBatch, column: str = "raw") -> pa.RecordBatch:
    """A row for each word of the texts in this column, due when its text was."""
    words, parents = words_of(batch.column(column))
    return pa.RecordBatch.from_arrays([words, batch.column(DUE).take(parents)], names=["word", DUE])


def count_words(batch: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Of every tuple how often its word has come by then, and the new totals. A tuple counts once, or as its `count` says."""
    words, before = known.column("word"), np.asarray(known.column("total"))
    places = np.asarray(pc.index_in(batch.column("word"), words))
    each = np.asarray(batch.column("count")) if "count" in batch.schema.names else np.ones(len(places), np.int64)
    counts = before[places] + running_sums(places, each)
    after = before + np.bincount(places, each, len(words)).astype(np.int64)
    counted = pa.RecordBatch.from_arrays(
        [batch.column("word"), pa.array(counts), batch.column(DUE)], names=["word", "count", DUE]
    )
    return counted, pa.RecordBatch.from_arrays([words, pa.array(after)], names=["word", "total"])


@dataclass(frozen=True)
class MergeCounts:
    """Takes the counts of words that were split over replicas into their totals: each part counts as its total says."""

    function: Callable[..., Any]
    """Counts tuples; see `count_words`."""

    def __call__(self, parts: pa.RecordBatch, known: pa.RecordBatch) -> Any:
        names = ["count" if name == "total" else name for name in parts.schema.names]
        return self.function(parts.rename_columns(names), known)


def count_here(batch: pa.RecordBatch) -> pa.Table:
    """The counts of the words in this batch alone, each due when the first of its tuples was."""
    together = pa.Table.from_batches([batch]).group_by("word", use_threads=False)
    return together.aggregate([([], "count_all"), (DUE, "min")]).rename_columns(["word", "count", DUE])


def add_count(
    words: Stream, each: Service, function: Callable[..., Any] = count_words, schema: pa.Schema = COUNTS
) -> Stream:
    """Declare `count` behind a stream of words; returns the stream of the totals."""
    if each.grouping.keyed:
        redirect = each.grouping.redirects
        merge = MergeCounts(function) if redirect else None
        keyed = words.key_by("word", redirect=redirect)
        return keyed.process(
            "count", each.of(function), mode="arrow", schema=schema, merge=merge, **STATE, **each.sizes
        )
    counts = words.batch("count", each.of(count_here), schema=COUNTS, **each.how)
    return counts.key_by("word").process("total", each.of(function), mode="arrow", schema=schema, **STATE, **each.sizes)


def running_sums(places: npt.NDArray[np.integer], each: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of every row the sum of `each` over the rows of its place up to it."""
    order = np.argsort(places, kind="stable")
    sums = np.cumsum(each[order])
    begins = np.flatnonzero(np.diff(places[order], prepend=-1))
    lengths = np.diff(begins, append=len(places))
    before = sums[begins] - each[order][begins]
    result = np.empty(len(places), np.int64)
    result[order] = sums - np.repeat(before, lengths)
    return result
