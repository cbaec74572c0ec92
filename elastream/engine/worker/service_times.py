"""Service times before the stream flows: a few of its tuples go through the operators in one host, and are thrown away.

Sinks are left out, for they write outside; they are timed by the first tuples of the stream. So are dataframe operators,
which Spark runs, and everything behind them or behind a streaming DataFrame, whose tuples cannot be had twice.
"""

import numpy as np
import pyarrow as pa

from elastream.engine.worker.context import WorkerContext
from elastream.topology import DUE, Graph, Operator, stored
from elastream.workload.replay import Replay

SAMPLE = 2000
"""Tuples made for it."""


def time_operators(context: WorkerContext, totals: dict[str, int], seconds: float) -> dict[str, float]:
    """Seconds a tuple takes, of every operator with lanes that could be timed, what is chained to it included."""
    graph = context.graph
    timed = _time_all(context, graph, totals, seconds)
    return {operator.name: timed[operator.name] for operator in graph.served if operator.name in timed}


def _time_all(context: WorkerContext, graph: Graph, totals: dict[str, int], seconds: float) -> dict[str, float]:
    given: dict[str, pa.RecordBatch] = {}
    each: dict[str, float] = {}
    share: dict[str, float] = {}
    slice_s = seconds / len(graph.operators)
    for operator in graph.operators:
        if operator.name in totals and isinstance(operator.source, Replay):
            try:
                given[operator.name] = _sample(operator.source, min(SAMPLE, totals[operator.name]), context.wall_s())
            except BaseException:
                # The first work will meet it too, and say which tuple cannot be made.
                continue
        inputs = [given[edge.source] for edge in graph.edges_into(operator.name) if edge.source in given]
        rows = sum(batch.num_rows for batch in inputs)
        if not rows or operator.kind.ends_the_graph or operator.by_spark:
            continue
        batch = pa.Table.from_batches(inputs).combine_chunks().to_batches()[0]
        try:
            each[operator.name], taken, made = _time(context, operator, batch, slice_s)
        except Exception:
            # The first work will meet it too, and say what is wrong.
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


def _sample(replay: Replay, rows: int, wall_s: float) -> pa.RecordBatch:
    due = pa.array(np.full(rows, int(wall_s * 1e6))).cast(pa.timestamp("us", "UTC"))
    return replay.rows(0, rows).append_column(pa.field(DUE, stored(replay.schema).field(DUE).type), due)


def _time(
    context: WorkerContext, operator: Operator, batch: pa.RecordBatch, seconds: float
) -> tuple[float, int, pa.RecordBatch]:
    """Ever larger pieces until the time or the tuples are used up; the first tuple, which may load things, counts little.

    What a keyed operator would remember of them is forgotten.
    """
    changes = context.changes_of(operator, context.wall_s())
    context.run_operator(operator, batch.slice(0, 1), changes)
    began, at, size = context.now(), 0, 1
    made = []
    while at < batch.num_rows and context.now() - began < seconds:
        piece = batch.slice(at, size)
        made += context.run_operator(operator, piece, changes).batches
        at += piece.num_rows
        size *= 2
    each = (context.now() - began) / at
    together = pa.Table.from_batches(made, schema=stored(operator.schema)).combine_chunks().to_batches()
    return each, at, together[0] if together else batch.slice(0, 0)
