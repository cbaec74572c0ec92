"""The run of one work: operators run on rows, and what comes out is routed, written and put into a receipt.

The data does not leave the process between these steps. Which rows enter is said in `enter_rows` and in `serve_lanes`.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from elastream.engine.messages import FailureNote, LaneReceipt, LatencyCounts, Loads, Receipt, Routing, SourceReceipt
from elastream.engine.worker.context import Chain, WorkerContext
from elastream.engine.worker.dead_letters import DEAD_LETTERS, Failure, all_failed, kind_of, letters, row_to_json
from elastream.engine.worker.delivery import Deliver, Delivery
from elastream.engine.worker.functions import Made
from elastream.engine.worker.in_parts import in_parts
from elastream.engine.worker.lateness import note_event_times
from elastream.engine.worker.outbox import Outbox
from elastream.engine.worker.smaller_works import Step
from elastream.engine.worker.split_keys import serve_split
from elastream.engine.worker.state_works import apart
from elastream.errors import ElastreamError, OperatorFailed, RunFailed
from elastream.kafka import Once
from elastream.lanes.entries import StateChange
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import Appended, LaneId
from elastream.report.latency import bucket_counts
from elastream.state.host_state import StateChanges
from elastream.topology import DUE, KeyedState, Kind, Operator
from elastream.user_code import describe, short

MOST_NOTES = 10
"""Kinds of failures that a receipt tells of; the dead letters have all."""


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
        self.origin = ""
        """The source and part, or the operator whose timers, that gave the rows which are served; empty where nobody asks."""
        self.mine: frozenset[int] = frozenset()
        """The key groups of the lane that is served."""
        self.step: Step | None = None
        """The part of a lane's work that is under way."""
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
        ends = operator.kind is Kind.SINK
        if ends and len(pieces) > 1:
            # One delivery: its id names all rows of the work.
            pieces = pa.Table.from_batches(pieces).combine_chunks().to_batches()
        for batch in pieces:
            if not batch.num_rows:
                continue
            wall, cpu = self.context.now(), self.context.cpu_s()
            if ends:
                made = self._deliver(operator, receipt, batch, first)
            elif operator.keyed is not None and operator.keyed.merge is not None:
                made = self._serve_split(operator, operator.keyed, receipt, batch)
            else:
                made = self.context.run_operator(operator, batch, self.changes.get(operator.name))
            receipt.busy_s += self.context.now() - wall
            receipt.cpu_s += self.context.cpu_s() - cpu
            failures = made.failures
            receipt.processed += batch.num_rows - len(failures)
            if not ends:
                self.context.judge(operator.name, made.rows, failures)
            if failures:
                self.fail(receipt, failures)
            if not ends:
                receipt.emitted += made.rows
            out += made.batches
        self.note_times(receipt, out)
        return out

    def note_times(self, receipt: LaneReceipt, batches: Sequence[pa.RecordBatch]) -> None:
        """Event times of rows that leave the operator of a receipt, if they begin there."""
        columns = self.context.event_times.get(receipt.operator)
        if columns is not None:
            note_event_times(columns, receipt, batches, self.origin)

    def fail(self, receipt: LaneReceipt, failures: Sequence[Failure]) -> None:
        """Set tuples aside as dead letters; raises when the run shall stop instead."""
        if failures and self.context.program.settings.errors.on_error == "stop":
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
        edges = self.context.graph.edges_from(receipt.operator)
        # To all lanes or, when one of the edges cannot route them, to none.
        shares = [self._outbox.share_out(edge, batch, sender) for edge in edges]
        for edge, parts in zip(edges, shares, strict=True):
            self._outbox.put_shares(edge, parts, self.origin if edge.target in self.context.tracked else "")
            if self.context.graph[edge.target].kind is Kind.OUTPUT:
                self._finish(receipt, batch)

    def route_in_parts(self, receipt: LaneReceipt, batch: pa.RecordBatch, sender: int) -> None:
        """The same for rows that wait in no lane: those that cannot be routed are set aside."""

        def route(part: pa.RecordBatch) -> Made:
            self.route(receipt, part, sender)
            return Made([])

        self.fail(receipt, in_parts(batch, route).failures)

    # -- the end

    def receipt(self, work: int) -> tuple[Receipt, Written | None]:
        """Write everything that was routed, then say so. The state changes last: after an error a part of the work is tried."""
        if self.failures:
            self._outbox.put(LaneId(DEAD_LETTERS, 0), letters(self.failures, self.context.wall_s()))
        for operator, changed in self.changes.items():
            if changed:
                self._outbox.put_state(operator, *changed.batch())
        receipt = Receipt(
            work,
            self._receipts,
            self._sources,
            latencies=self._latencies(),
            memories={source: memory.news() for source, memory in self.memories.items()},
            failures=self._first_failures(),
        )
        written = self._outbox.write(self.context)
        receipt.appended, receipt.changes = self._apply_changes(written)
        return receipt, written

    # -- inside

    def _first_failures(self) -> list[FailureNote]:
        """Of each operator and kind of error, the first."""
        first: dict[tuple[str, str], FailureNote] = {}
        for operator, lane, failure in self.failures:
            key = operator, kind_of(failure.error)
            if key not in first and len(first) < MOST_NOTES:
                first[key] = FailureNote(operator, lane, failure.error, short(row_to_json(failure.row)))
        return list(first.values())

    def _latencies(self) -> LatencyCounts | None:
        """Of the tuples that finished."""
        if not self._finished:
            return None
        now_us = self.context.wall_s() * 1e6
        ages = [(now_us - np.asarray(due.view(pa.int64()))) / 1e6 for due in self._finished]
        return LatencyCounts(*bucket_counts(ages[0] if len(ages) == 1 else np.concatenate(ages)))

    def _apply_changes(self, written: Written | None) -> tuple[list[Appended], list[StateChange]]:
        """Have the host's state follow what was written; gives what goes to lanes, and the changes with their checksums.

        Half of that cannot be taken back, so an error ends the run.
        """
        try:
            sums = {operator: changed.apply() for operator, changed in self.changes.items()}
            for lane, groups in self._woken:
                assert self.context.state is not None
                lane.timers = self.context.state.first_timers(lane.operator, groups)
            return apart(written, sums)
        except ElastreamError:
            raise
        except Exception as error:
            names = ", ".join(map(repr, self.changes))
            raise RunFailed(
                f"state of {names}: the host could not keep it: {describe(error)}; start again with the same base"
            ) from error

    def _serve_split(self, operator: Operator, state: KeyedState, receipt: LaneReceipt, batch: pa.RecordBatch) -> Made:
        """For an operator whose keys may be split: parts of states go to the lanes in which their keys live."""

        def serve(part: pa.RecordBatch) -> Made:
            served = serve_split(operator, part, self.changes[operator.name], self.mine)
            receipt.hot += served.hot
            if served.parts is not None:
                self._outbox.put_parts(operator.name, served.parts, state.key)
            return served.made

        return in_parts(batch, serve)

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
