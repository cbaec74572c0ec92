"""One work of a host: rows are read or made, operators run, what comes out is routed and written, and a receipt is given."""

from elastream.engine.messages import (
    Receipt,
    Routing,
    SourceWork,
    SyncWork,
    TimeWork,
    WholeWork,
    Work,
    problem_of,
)
from elastream.engine.worker.context import WorkerContext
from elastream.engine.worker.enter_rows import replay_rows
from elastream.engine.worker.serve_lanes import bury, serve_lanes
from elastream.engine.worker.service_times import time_operators
from elastream.engine.worker.state_works import sync_state, write_whole
from elastream.engine.worker.work_run import WorkRun
from elastream.errors import ElastreamError
from elastream.lanes.segment_files import Written


def run_work(context: WorkerContext, routing: Routing, work: Work) -> tuple[Receipt, Written | None]:
    """Do one work. An operator's defect comes back in the receipt; then nothing else is in it."""
    if isinstance(work, TimeWork):
        return Receipt(work.id, timed=time_operators(context, work.totals, work.seconds)), None
    if isinstance(work, SyncWork):
        return sync_state(context, work), None
    if isinstance(work, WholeWork):
        return write_whole(context, work)
    run = WorkRun(context, routing, work.turn, work.queued, work.loads)
    try:
        if isinstance(work, SourceWork):
            replay_rows(run, work)
        elif work.bury:
            bury(run, work)
        else:
            serve_lanes(run, work)
        return run.receipt(work.id)
    except ElastreamError as error:
        return Receipt(work.id, problem=problem_of(error)), None
