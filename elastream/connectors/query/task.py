"""The tasks of the edges, in Python workers: what Spark has read is routed to lanes, and lanes are read for Spark."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa

from elastream.engine.messages import LaneReceipt, Loads, Receipt, Routing, ServeWork, problem_of
from elastream.engine.worker.base_id import check_base
from elastream.engine.worker.context import WorkerContext, make_context
from elastream.engine.worker.delivery import Deliver
from elastream.engine.worker.enter_rows import enter_rows, give_rows
from elastream.engine.worker.program import load_program
from elastream.engine.worker.serve_lanes import serve_lanes, take_rows
from elastream.engine.worker.work_run import WorkRun
from elastream.errors import ElastreamError
from elastream.lanes.segment_files import SegmentWriter
from elastream.lanes.segments import SchemaId

EDGE_WORK = 0
"""The number of works of which hosts know nothing."""


class EdgeRouting(msgspec.Struct, frozen=True):
    """What the tasks of one batch need to route their rows. It travels as one of Spark's local properties."""

    entry: int
    """The newest when the batch began: it is in the names of the segments that the tasks write."""
    began_s: float
    """Rows that do not say when they were due are due then."""
    lanes: Routing
    turn: int
    queued: dict[str, list[int]] = {}
    loads: dict[str, list[Loads]] = {}
    """Per source or dataframe operator, for the edges that leave it."""
    memories: dict[str, dict[str, Any]] = {}
    """Per source in which rows may come again, which of them were there."""
    discard: bool = False
    """True: route nothing, for Spark repeats a batch whose results the ledger has."""


class EdgeWork(msgspec.Struct, frozen=True):
    """What one task reads of the lanes of one operator."""

    entry: int
    work: ServeWork
    schemas: dict[SchemaId, str]


def to_text(message: EdgeRouting | EdgeWork) -> str:
    return msgspec.json.encode(message).decode()


def read_routing(text: str) -> EdgeRouting:
    return msgspec.json.decode(text, type=EdgeRouting)


def read_work(text: str) -> EdgeWork:
    return msgspec.json.decode(text, type=EdgeWork)


def route_source_rows(
    program: bytes, routing: EdgeRouting, source: str, batches: Iterator[pa.RecordBatch], sender: int
) -> Receipt:
    """Rows of a streaming source enter."""

    def enter(run: WorkRun) -> None:
        enter_rows(run, source, sender, batches, routing.began_s, routing.memories.get(source))

    return _routed(program, routing, source, enter)


def route_results(
    program: bytes, routing: EdgeRouting, operator: str, batches: Iterator[pa.RecordBatch], sender: int
) -> Receipt:
    """What Spark made for a dataframe operator goes on to lanes."""

    def give(run: WorkRun) -> None:
        for batch in batches:
            give_rows(run, operator, batch, routing.began_s, sender)

    return _routed(program, routing, operator, give)


def read_lanes(program: bytes, edge: EdgeWork) -> tuple[Iterator[pa.RecordBatch], Callable[[], Receipt]]:
    """The rows of lanes that Spark serves, and the receipt, to be asked for when they have been read."""
    context = _context(program, edge.entry)
    context.learn(edge.schemas)
    run = WorkRun(context, Routing(), 0)
    rows = (batch for lane in edge.work.lanes for batch in take_rows(run, edge.work, lane))
    return rows, lambda: run.receipt(EDGE_WORK)[0]


def take_lane(program: bytes, edge: EdgeWork, deliver: Deliver) -> Callable[[], Receipt]:
    """The rows of a lane of a sink, for somebody else to write; the receipt is to be asked for when that is done."""
    context = _context(program, edge.entry)
    context.learn(edge.schemas)
    run = WorkRun(context, Routing(), 0, deliver=deliver)
    serve_lanes(run, edge.work)
    return lambda: run.receipt(EDGE_WORK)[0]


def _routed(program: bytes, routing: EdgeRouting, head: str, enter: Callable[[WorkRun], None]) -> Receipt:
    context = _context(program, routing.entry)
    run = WorkRun(context, routing.lanes, routing.turn, routing.queued, routing.loads.get(head, []))
    try:
        enter(run)
        return run.receipt(EDGE_WORK)[0]
    except ElastreamError as error:
        return Receipt(EDGE_WORK, [LaneReceipt(head, 0)], problem=problem_of(error))


def _context(program: bytes, entry: int) -> WorkerContext:
    """A writer of its own for every task: one that Spark runs again must not meet the files of the first."""
    known = _base_context(program)
    writer = SegmentWriter(known.store, f"{max(entry, 0):012d}-{uuid.uuid4().hex[:12]}", appends=False)
    return replace(known, writer=writer)


@lru_cache(maxsize=4)
def _base_context(program: bytes) -> WorkerContext:
    loaded, store = load_program(program)
    check_base(store, loaded.base_id)
    return make_context(replace(loaded, appends=False), store, "", cached=False)
