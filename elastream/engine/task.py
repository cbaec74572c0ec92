"""A task, in a Python worker: read the slices, run the operators, route what comes out, write, give a receipt.

The data does not leave the process between these steps.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from elastream.engine.base_id import check_base
from elastream.engine.program import Program
from elastream.engine.serving import Deliver, Serving
from elastream.engine.work import LaneWork, Receipt, TaskWork
from elastream.errors import ElastreamError
from elastream.lanes import Store


def run_task(program: Program, store: Store, work: TaskWork) -> Receipt:
    """Do all the work of one task. An operator's defect comes back in the receipt, nothing of the tick is applied."""
    task = Serving(program, store, work)
    try:
        check_base(store, program.base_id)
        if work.warm_s:
            time.sleep(work.warm_s)
        for source in work.sources:
            task.make(source)
        if work.side_by_side:
            _serve_side_by_side(task, program, store, work)
        else:
            for lane in work.lanes:
                task.serve(lane)
        return task.receipt()
    except ElastreamError as error:
        return Receipt.failed(error)


def _serve_side_by_side(task: Serving, program: Program, store: Store, work: TaskWork) -> None:
    """One thread for each lane; what they made is written together."""

    def served(lane: LaneWork) -> Serving:
        alone = Serving(program, store, work)
        alone.serve(lane)
        return alone

    with ThreadPoolExecutor(max_workers=len(work.lanes)) as pool:
        for alone in pool.map(served, work.lanes):
            task.absorb(alone)


def route_batch(
    program: Program, store: Store, work: TaskWork, source: str, batches: Iterator[pa.RecordBatch]
) -> Receipt:
    """The same for the rows of a streaming DataFrame, which Spark has read already."""
    task = Serving(program, store, work)
    try:
        check_base(store, program.base_id)
        task.enter(source, 0, batches)
        return task.receipt()
    except ElastreamError as error:
        return Receipt.failed(error)


def take_lane(program: Program, store: Store, work: TaskWork, deliver: Deliver) -> Callable[[], Receipt]:
    """The rows of one lane of a sink, for somebody else to write; the receipt is to be asked for when that is done."""
    check_base(store, program.base_id)
    task = Serving(program, store, work, deliver)
    task.serve(work.lanes[0])
    return task.receipt


def read_lanes(
    program: Program, store: Store, work: TaskWork
) -> tuple[Iterator[pa.RecordBatch], Callable[[], Receipt]]:
    """The rows of lanes that Spark serves, and the receipt, to be asked for when they have been read."""
    task = Serving(program, store, work)
    return (batch for lane in work.lanes for batch in task.take(lane)), task.receipt


def route_results(
    program: Program, store: Store, work: TaskWork, operator: str, sender: int, batches: Iterator[pa.RecordBatch]
) -> Receipt:
    """What Spark made of them goes on to lanes. Which lane a row came from is not known any more."""
    task = Serving(program, store, work)
    try:
        for batch in batches:
            task.give(operator, sender, batch)
        return task.receipt()
    except ElastreamError as error:
        return Receipt.failed(error)
