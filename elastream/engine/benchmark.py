"""Service times before the stream flows: a few of its tuples go through the operators in one worker, and are thrown away.

Sinks are left out, for they write outside; they are timed by the first tuples of the stream. So are dataframe operators,
which Spark runs, and everything behind them or behind a streaming DataFrame, whose tuples cannot be had twice.
"""

import time

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from elastream.engine.functions import apply
from elastream.engine.program import load_program
from elastream.engine.sources import Replay
from elastream.errors import ElastreamError
from elastream.topology import DUE, Graph, Operator, stored

SAMPLE = 2000
"""Tuples made for it."""


def benchmark(spark: SparkSession, graph: Graph, program: bytes, seconds: float) -> dict[str, float]:
    """Seconds a tuple takes, of every operator with lanes that could be timed, what is chained to it included."""
    totals: dict[str, int] = {s.name: s.source.arrivals.total for s in graph.sources if isinstance(s.source, Replay)}
    if not totals:
        return {}
    timed = spark.sparkContext.parallelize([0], 1).map(lambda _: _time_all(program, totals, seconds)).collect()[0]
    return {o.name: timed[o.name] for o in graph.served if o.name in timed}


def _time_all(program: bytes, totals: dict[str, int], seconds: float) -> dict[str, float]:
    graph = load_program(program)[0].graph
    given: dict[str, pa.RecordBatch] = {}
    each: dict[str, float] = {}
    share: dict[str, float] = {}
    slice_s = seconds / len(graph.operators)
    for operator in graph.operators:
        if operator.name in totals:
            given[operator.name] = _sample(operator.source, min(SAMPLE, totals[operator.name]))
        inputs = [given[edge.source] for edge in graph.edges_into(operator.name) if edge.source in given]
        rows = sum(batch.num_rows for batch in inputs)
        if not rows or operator.kind.ends_the_graph or operator.by_spark:
            continue
        batch = pa.Table.from_batches(inputs).combine_chunks().to_batches()[0]
        try:
            each[operator.name], taken, made = _time(operator, batch, slice_s)
        except ElastreamError:
            # The first tick will meet it too, and say what is wrong.
            continue
        share[operator.name] = made.num_rows / taken
        given[operator.name] = made
    for head in graph.served:
        reaching = 1.0
        for member in graph.chain(head.name)[1:]:
            reaching *= share.get(graph.edges_into(member.name)[0].source, 0.0)
            if head.name in each:
                each[head.name] += reaching * each.get(member.name, 0.0)
    return each


def _sample(replay: Replay, rows: int) -> pa.RecordBatch:
    due = pa.array(np.full(rows, int(time.time() * 1e6))).cast(pa.timestamp("us", "UTC"))
    return replay.rows(0, rows).append_column(pa.field(DUE, stored(replay.schema).field(DUE).type), due)


def _time(operator: Operator, batch: pa.RecordBatch, seconds: float) -> tuple[float, int, pa.RecordBatch]:
    """Ever larger pieces until the time or the tuples are used up; the first tuple, which may load things, counts little."""
    apply(operator, batch.slice(0, 1))
    began, at, size = time.perf_counter(), 0, 1
    made = []
    while at < batch.num_rows and time.perf_counter() - began < seconds:
        piece = batch.slice(at, size)
        made.append(apply(operator, piece).batch)
        at += piece.num_rows
        size *= 2
    each = (time.perf_counter() - began) / at
    together = pa.Table.from_batches(made).combine_chunks().to_batches()
    return each, at, together[0] if together else made[0]
