"""What a receipt may say: a host that says anything else is not one of ours any more, and is replaced."""

from elastream.engine.driver.dispatch.works import UnderWay
from elastream.engine.driver.placement.state_tasks import StateTask, Task
from elastream.engine.messages import LaneReceipt, Receipt
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.lanes.runs import are_whole, unpacked
from elastream.lanes.state import LedgerState
from elastream.topology import Graph
from elastream.topology.groupings import KEY_GROUPS


class ReceiptCheck:
    """For one graph."""

    def __init__(self, graph: Graph, state: LedgerState) -> None:
        self._state = state
        heads = (*graph.sources, *graph.served)
        self._members: dict[str, set[str]] = {head.name: {m.name for m in graph.chain(head.name)} for head in heads}
        self._targets: dict[str, set[str]] = {
            head.name: {edge.target for edge in graph.edges_leaving(head.name)} | {DEAD_LETTERS} for head in heads
        }
        for head in heads:
            if head.keyed is not None and head.keyed.merge is not None:
                # Parts of the states of split keys.
                self._targets[head.name].add(head.name)

    def problem(self, work: UnderWay, receipt: Receipt) -> str | None:
        """Why this cannot be what came of that work; None when it can."""
        if receipt.problem is not None or receipt.timed is not None:
            return None
        if work.task is not None:
            return _state_problem(work.task.task, receipt)
        members, targets = self._members.get(work.operator, set()), self._targets.get(work.operator, set())
        lanes = {lane.lane: rows for lane, rows in work.lanes.items()}
        if work.source is not None:
            lanes = {work.source.part: 0}
        if receipt.operators and receipt.head != work.operator:
            return f"a receipt of {receipt.head!r} for a work of {work.operator!r}"
        for lane in receipt.operators:
            if lane.operator not in members or lane.lane not in lanes:
                return f"replica {lane.lane} of {lane.operator!r}, which it was not given"
            if min(_counts(lane)) < 0 or lane.consumed > lanes[lane.lane]:
                return f"counts of {lane.operator!r} that cannot be"
        for piece in receipt.appended:
            if piece.operator not in targets or piece.lane < 0 or piece.slice.rows < 1 or piece.slice.first < 0:
                return f"tuples for {piece.operator!r}, where none of them go"
            if piece.slice.runs and not (
                piece.operator in self._state.owners
                and are_whole(piece.slice.runs, piece.slice.first + piece.slice.rows, KEY_GROUPS)
            ):
                return f"key groups of {piece.operator!r} that cannot be"
            if piece.slice.schema not in self._state.schemas:
                return f"columns {piece.slice.schema!r} that nobody knows"
        for change in receipt.changes:
            if change.operator not in members or change.operator not in self._state.logs:
                return f"a state of {change.operator!r}, which it was not given"
            owners, runs = self._state.owners[change.operator], change.slice.runs
            if not are_whole(runs, change.slice.rows, KEY_GROUPS) or any(
                owners[g] not in lanes for g, _ in unpacked(runs)
            ):
                return f"the state of keys of {change.operator!r} that are none of its own"
            if len(change.sums) not in (0, 2 * len(runs)):
                return f"checksums of {change.operator!r} for other key groups than changed"
        return None


def _state_problem(task: StateTask, receipt: Receipt) -> str | None:
    """Of a work about states."""
    told = {facts.group for facts in receipt.facts} | {whole.group for whole in receipt.wholes}
    if not told <= set(task.groups) or any(whole.operator != task.operator for whole in receipt.wholes):
        return f"key groups of {task.operator!r} that it was not asked for"
    if receipt.operators or receipt.appended or (receipt.wholes and task.kind is not Task.WHOLE):
        return f"more than was asked of the states of {task.operator!r}"
    return None


def _counts(lane: LaneReceipt) -> tuple[float, ...]:
    return (
        lane.consumed,
        lane.processed,
        lane.emitted,
        lane.failed,
        lane.late,
        lane.finished,
        lane.busy_s,
        lane.cpu_s,
    )
