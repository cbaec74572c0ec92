"""Changelogs: what changed in the states of an operator, as Arrow batches that segments hold, those of one key group together."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import pyarrow as pa

from elastream.lanes.runs import Runs, cut, packed
from elastream.lanes.segments import Slice
from elastream.state.store import Change

SCHEMA = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("record", pa.binary())])
"""A record that is null was forgotten."""


def to_batch(changes: Iterable[Change]) -> tuple[pa.RecordBatch, Runs]:
    """Changes of many groups, and how many of each."""
    ordered = sorted(changes, key=lambda change: change[0])
    columns = [pa.array([key for _, key, _ in ordered], pa.binary()), pa.array([r for _, _, r in ordered], pa.binary())]
    runs = packed((group, len(list(some))) for group, some in groupby(ordered, key=lambda change: change[0]))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), runs


def changes_in(batch: pa.RecordBatch, piece: Slice, groups: frozenset[int]) -> Iterator[Change]:
    """The changes of some groups in a batch that was read for this slice."""
    runs: list[tuple[int, int, int]] = []
    at = 0
    for group, rows in cut(piece.runs, piece.first, piece.rows):
        if group in groups:
            runs.append((group, at, at + rows))
        at += rows
    if not runs:
        return
    first, stop = runs[0][1], runs[-1][2]
    # One long list is quicker made than many short ones.
    keys, records = (batch.column(place).slice(first, stop - first).to_pylist() for place in (0, 1))
    for group, begin, end in runs:
        for row in range(begin - first, end - first):
            yield group, keys[row], records[row]
