"""Works about states: a host learns those of key groups, says what they amount to, and writes them whole."""

from elastream.engine.messages import GroupFacts, Receipt, SyncWork, WholeWork, problem_of
from elastream.engine.worker.context import WorkerContext
from elastream.errors import ElastreamError
from elastream.lanes.entries import GroupWhole, StateChange
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import PARTS, STATE, Appended, LaneId


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
    batches, runs, facts = {}, {}, {}
    for group in work.groups:
        lane = LaneId(work.operator + STATE, group)
        batch, runs[lane], facts[group] = state.whole(work.operator, group, context.wall_s())
        batches[lane] = [batch]
    try:
        written = context.writer.write(batches, context.lane_schemas, context.kept, runs)
    except OSError as error:
        return Receipt(work.id, problem=problem_of(context.unwritable(error))), None
    wholes = [
        GroupWhole(work.operator, group, found.keys, found.size, [a.slice for a in written.appended if a.lane == group])
        for group, found in facts.items()
    ]
    return Receipt(work.id, wholes=wholes, facts=[GroupFacts(g, *found) for g, found in facts.items()]), written


def apart(written: Written | None) -> tuple[list[Appended], list[StateChange]]:
    """What goes to lanes, and what changed in states."""
    if written is None:
        return [], []
    tuples: list[Appended] = []
    states: list[Appended] = []
    for piece in written.appended:
        if piece.operator.endswith(STATE):
            states.append(piece)
        elif piece.operator.endswith(PARTS):
            tuples.append(piece._replace(operator=piece.operator.removesuffix(PARTS)))
        else:
            tuples.append(piece)
    return tuples, [StateChange(a.operator.removesuffix(STATE), a.slice) for a in states]
