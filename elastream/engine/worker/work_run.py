"""The run of one work: operators run on rows, and what comes out is routed, written and put into a receipt.

The data does not leave the process between these steps. Which rows enter is said in `enter_rows` and in `serve_lanes`.
"""

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from elastream.engine.messages import LaneReceipt, LatencyCounts, Loads, Receipt, Routing, SourceReceipt
from elastream.engine.worker.context import Chain, WorkerContext
from elastream.engine.worker.dead_letters import DEAD_LETTERS, Failure, all_failed, describe, letters, row_to_json
from elastream.engine.worker.delivery import Deliver, Delivery
from elastream.engine.worker.functions import Made
from elastream.engine.worker.outbox import Outbox
from elastream.engine.worker.split_keys import serve_split
from elastream.engine.worker.state_works import apart
from elastream.errors import OperatorFailed
from elastream.kafka import Once
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import LaneId
from elastream.scoring.latency import bucket_counts
from elastream.state.host_state import StateChanges
from elastream.topology import DUE, KeyedState, Kind, Operator


class WorkRun:
    """The receipts, the outbox and the state changes of one work; `receipt` ends it. One thread."""

    def __init__(
        self,
        context: WorkerContext,
        routing: Routing,
        turn: int,
        queued: dict[str, list[int]] | None = None,
        loads: list[Loads] | None = None,
        deliver: Deliver | None = None,
    ) -> None:
        """`deliver` takes the rows of a sink in place of the sink's function."""
        self.context = context
        self.failures: list[tuple[str, int, Failure]] = []
        """Tuples set aside, each with its operator and lane."""
        self.memories: dict[str, Once] = {}
        """Per source in which rows may come again, which of them were there."""
        self.changes: dict[str, StateChanges] = {}
        """Per keyed operator, what is changed in its states."""
        self.mine: frozenset[int] = frozenset()
        """The key groups of the lane that is served."""
        self._deliver_to = deliver
        self._outbox = Outbox(routing, turn, queued or {}, loads or [])
        self._receipts: list[LaneReceipt] = []
        self._sources: list[SourceReceipt] = []
        self._finished: list[pa.Array] = []
        self._woken: list[tuple[LaneReceipt, tuple[int, ...]]] = []

    # -- the beginning

    def add(self, receipt: LaneReceipt) -> LaneReceipt:
        """Of an operator and a lane; it is filled in while the work runs."""
        self._receipts.append(receipt)
        return receipt

    def add_chain(self, chain: Chain, lane: int) -> list[LaneReceipt]:
        """The same for all operators of a chain."""
        receipts = [LaneReceipt(member.name, lane) for member in chain.members]
        self._receipts += receipts
        return receipts

    def add_source(self, receipt: SourceReceipt) -> None:
        """Of the tuples of a replay that are made."""
        self._sources.append(receipt)

    def add_woken(self, receipt: LaneReceipt, groups: tuple[int, ...]) -> None:
        """Of a lane whose keys are woken, and its key groups: the receipt will say when the next key is to be woken."""
        self._woken.append((receipt, groups))

    def begin_changes(self, head: str, planned_s: float) -> None:
        """Before keyed operators of a chain run."""
        for member in self.context.chains[head].members:
            changes = self.context.changes_of(member, planned_s)
            if changes is not None:
                self.changes[member.name] = changes

    # -- rows

    def run(
        self, operator: Operator, receipt: LaneReceipt, pieces: list[pa.RecordBatch], first: int
    ) -> list[pa.RecordBatch]:
        """Run one operator; gives what leaves it. `first`: the number of the first row in its lane, for a sink."""
        out: list[pa.RecordBatch] = []
        for batch in pieces:
            if not batch.num_rows:
                continue
            wall, cpu = time.perf_counter(), time.thread_time()
            ends = operator.kind is Kind.SINK
            if ends:
                made = self._deliver(operator, receipt, batch, first)
            elif operator.keyed is not None and operator.keyed.merge is not None:
                made = self._serve_split(operator, operator.keyed, receipt, batch)
            else:
                made = self.context.run_operator(operator, batch, self.changes.get(operator.name))
            receipt.busy_s += time.perf_counter() - wall
            receipt.cpu_s += time.thread_time() - cpu
            failures = made.failures
            receipt.processed += batch.num_rows - len(failures)
            if not ends:
                self.context.judge(operator.name, made.rows, failures)
            if failures:
                self.fail(receipt, failures)
            if not ends:
                receipt.emitted += made.rows
            out += made.batches
        return out

    def fail(self, receipt: LaneReceipt, failures: Sequence[Failure]) -> None:
        """Set tuples aside as dead letters; raises when the run shall stop instead."""
        if failures and self.context.program.settings.on_error == "stop":
            first = failures[0]
            raise OperatorFailed(
                f"operator {receipt.operator!r} replica {receipt.lane}: {first.error} on tuple {row_to_json(first.row)}; "
                "mend the function, or run with on_error='dead_letter'"
            )
        receipt.failed += len(failures)
        self.failures += [(receipt.operator, receipt.lane, failure) for failure in failures]

    def route(self, receipt: LaneReceipt, batch: pa.RecordBatch, sender: int) -> None:
        """To the lanes behind the operator that the receipt is of."""
        if not batch.num_rows:
            return
        for edge in self.context.graph.edges_from(receipt.operator):
            self._outbox.route(edge, batch, sender)
            if self.context.graph[edge.target].kind is Kind.OUTPUT:
                self._finish(receipt, batch)

    # -- the end

    def receipt(self, work: int) -> tuple[Receipt, Written | None]:
        """Write everything that was routed, then say so."""
        if self.failures:
            self._outbox.put(LaneId(DEAD_LETTERS, 0), letters(self.failures, self.context.wall_s()))
        for operator, changed in self.changes.items():
            if changed:
                self._outbox.put_state(operator, *changed.batch())
        written = self._outbox.write(self.context)
        for changed in self.changes.values():
            changed.apply()
        for lane, groups in self._woken:
            assert self.context.state is not None
            lane.timers = self.context.state.first_timers(lane.operator, groups)
        appended, changes = apart(written)
        latencies = None
        if self._finished:
            now_us = self.context.wall_s() * 1e6
            ages = [(now_us - np.asarray(due.view(pa.int64()))) / 1e6 for due in self._finished]
            latencies = LatencyCounts(*bucket_counts(ages[0] if len(ages) == 1 else np.concatenate(ages)))
        return (
            Receipt(
                work,
                self._receipts,
                self._sources,
                appended,
                latencies,
                {source: memory.news() for source, memory in self.memories.items()},
                changes=changes,
            ),
            written,
        )

    # -- inside

    def _serve_split(self, operator: Operator, state: KeyedState, receipt: LaneReceipt, batch: pa.RecordBatch) -> Made:
        """For an operator whose keys may be split: parts of states go to the lanes in which their keys live."""
        served = serve_split(operator, batch, self.changes[operator.name], self.mine)
        receipt.hot += served.hot
        if served.parts is not None:
            self._outbox.put_parts(operator.name, served.parts, state.key)
        return served.made

    def _deliver(self, operator: Operator, receipt: LaneReceipt, batch: pa.RecordBatch, first: int) -> Made:
        """Give a sink its rows; when it raises, all of them count as failed, for what it wrote is not known."""
        base_id = self.context.program.base_id
        identity = f"{base_id}-{operator.name}-{receipt.lane}-{first}"
        function = self._deliver_to or operator.function
        assert function is not None
        try:
            function(batch, Delivery(identity, operator.name, receipt.lane, first, base_id))
        except BaseException as error:
            return Made([], all_failed(batch, describe(error)))
        self._finish(receipt, batch)
        return Made([])

    def _finish(self, receipt: LaneReceipt, batch: pa.RecordBatch) -> None:
        receipt.finished += batch.num_rows
        self._finished.append(batch.column(DUE))
