"""Works about states: a host learns those of key groups, says what they amount to, and writes them whole."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from elastream.engine.messages import GroupFacts, Receipt, SyncWork, WholeWork, problem_of
from elastream.engine.worker.context import WorkerContext
from elastream.errors import ElastreamError
from elastream.lanes.entries import GroupWhole, StateChange
from elastream.lanes.runs import Runs, unpacked
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import PARTS, STATE, Appended, LaneId, WrittenFor
from elastream.lanes.state_sums import GroupSums, packed_sums, recorded


def sync_state(context: WorkerContext, work: SyncWork) -> Receipt:
    """Learn the states of key groups from segments."""
    state = context.state
    assert state is not None, "states are in hosts"
    try:
        state.forget(work.operator, work.forget)
        since = {one.group: one.since for one in work.groups}
        anew = frozenset(one.group for one in work.groups if one.anew)
        state.learn(work.operator, since, anew, work.wholes, work.changes, context.read)
        facts = [GroupFacts(group, *state.facts(work.operator, group)) for group in since] if work.measure else []
    except ElastreamError as error:
        return Receipt(work.id, problem=problem_of(error))
    return Receipt(work.id, facts=facts)


def write_whole(context: WorkerContext, work: WholeWork) -> tuple[Receipt, Written | None]:
    """Say what key groups amount to, and write them whole when that is asked."""
    state = context.state
    assert state is not None, "states are in hosts"
    if not work.write:
        return Receipt(work.id, facts=[GroupFacts(g, *state.facts(work.operator, g)) for g in work.groups]), None
    batches: dict[WrittenFor, list[pa.RecordBatch]] = {}
    runs: dict[WrittenFor, Runs] = {}
    facts, before = {}, {}
    for group in work.groups:
        before[group] = state.facts(work.operator, group).checksum
        lane = LaneId(work.operator + STATE, group)
        batch, runs[lane], facts[group] = state.whole(work.operator, group, context.wall_s())
        batches[lane] = [batch]
    try:
        written = context.writer.write(batches, context.lane_schemas, context.kept, runs)
    except OSError as error:
        return Receipt(work.id, problem=problem_of(context.unwritable(error))), None
    wholes = [
        GroupWhole(
            work.operator,
            group,
            found.keys,
            found.size,
            [a.slice for a in written.appended if a.lane == group],
            checksum=recorded(found.checksum),
            before=recorded(before[group]),
        )
        for group, found in facts.items()
    ]
    return Receipt(work.id, wholes=wholes, facts=[GroupFacts(g, *found) for g, found in facts.items()]), written


def apart(
    written: Written | None, sums: Mapping[str, Mapping[int, GroupSums]]
) -> tuple[list[Appended], list[StateChange]]:
    """What goes to lanes, and what changed in states; `sums`: per operator and key group that changed, its checksums."""
    if written is None:
        return [], []
    tuples: list[Appended] = []
    states: list[StateChange] = []
    for piece in written.appended:
        if piece.operator.endswith(STATE):
            states.append(StateChange(piece.operator.removesuffix(STATE), piece.slice))
        elif piece.operator.endswith(PARTS):
            tuples.append(piece._replace(operator=piece.operator.removesuffix(PARTS)))
        else:
            tuples.append(piece)
    return tuples, _with_sums(states, sums)


def _with_sums(changes: list[StateChange], sums: Mapping[str, Mapping[int, GroupSums]]) -> list[StateChange]:
    """The changes of one work, with checksums: of a group in several runs, the first has that before, the last that after."""
    left = Counter((change.operator, group) for change in changes for group, _ in unpacked(change.slice.runs))
    begun: set[tuple[str, int]] = set()
    summed = []
    for change in changes:
        pairs = []
        for group, _ in unpacked(change.slice.runs):
            place = change.operator, group
            pair = sums[change.operator][group]
            left[place] -= 1
            if left[place] or place in begun:
                pair = GroupSums(0 if place in begun else pair.before, 0 if left[place] else pair.after)
                begun.add(place)
            pairs.append(pair)
        summed.append(change._replace(sums=packed_sums(pairs)))
    return summed
