"""What the measured operators do. Plain functions in a small module: workers import it, and both systems run the same."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

SPIN_S = 20e-6
"""The work of one tuple in one operator, where there is work."""

SLEEP_S = 0.002
"""The service time of one tuple where lanes are to matter more than cores."""


def nothing(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def spin(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Compute for `SPIN_S` on every tuple."""
    clock = time.perf_counter
    for _ in range(batch.num_rows):
        until = clock() + SPIN_S
        while clock() < until:
            pass
    return batch


def doze(row: dict[str, Any]) -> dict[str, Any]:
    """Wait for `SLEEP_S`, as for an answer from elsewhere."""
    time.sleep(SLEEP_S)
    return row


def sink_nothing(batch: pa.RecordBatch, delivery: object) -> None:
    """Takes everything, keeps nothing."""


def sink_spin(batch: pa.RecordBatch, delivery: object) -> None:
    spin(batch)


def sink_doze(batch: pa.RecordBatch, delivery: object) -> None:
    for _ in range(batch.num_rows):
        time.sleep(SLEEP_S)


def sink_crawl(batch: pa.RecordBatch, delivery: object) -> None:
    """So slow that whatever comes must wait."""
    time.sleep(10 * SLEEP_S * batch.num_rows)


def arrow_nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For Spark's `mapInArrow`."""
    return map(nothing, batches)


def arrow_spin(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(spin, batches)


def arrow_spin_four(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The four operators fused by hand into one function: what plain Spark can do when nobody else may rescale them."""
    for batch in batches:
        yield spin(spin(spin(spin(batch))))


def arrow_doze(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for _ in range(batch.num_rows):
            time.sleep(SLEEP_S)
        yield batch
