"""Plans, without Spark: how much each lane gets, which lanes share a task, and what full lanes hold back."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from flows import numbers
from hypothesis import given
from hypothesis import strategies as st

from elastream import Settings, Topology, groupings, sinks, sources
from elastream.control import ReplicaObservation
from elastream.engine.base_id import base_id
from elastream.engine.estimates import Estimates
from elastream.engine.first_plan import continued_plan
from elastream.engine.frame_plan import make_again, make_frames, taken
from elastream.engine.loads import Loads
from elastream.engine.planner import FIRST_TRY, SHARED_TASK_S, Plan, make_plan, make_tasks, make_writes
from elastream.engine.program import Program
from elastream.engine.task import take_lane
from elastream.engine.work import LaneWork, OperatorReceipt, Receipt, TaskWork
from elastream.lanes import Appended, Book, Entry, LaneId, Slice, Store
from elastream.lanes.segments import SchemaId, encode_schema, write_segments
from elastream.testing import observation, operator, source
from elastream.topology import DUE, Graph, stored
from elastream.workload import constant


def graph(grouping: groupings.Grouping = groupings.shuffle) -> Graph:
    flow = Topology("plan").source("in", sources.replay(constant(1000, 60)))
    flow.batch("a", lambda b: b, after="in", replicas=(1, 8), start=2)
    flow.batch("b", lambda b: b, after="a", grouping=grouping, replicas=(1, 8), start=4)
    return flow.output("out", after="b").build()


ACTIVE: dict[str, tuple[int, ...]] = {"a": (0, 1), "b": (0, 1, 2, 3), "out": (0,)}


def book(**queued: dict[int, int]) -> Book:
    """A book in which so many tuples wait: book(a={0: 100})."""
    made = Book()
    pieces = [
        Appended(name, lane, Slice("000000000000-x.arrow", lane * 10, 10, 0, SchemaId("s"), 0, rows))
        for name, lanes in queued.items()
        for lane, rows in lanes.items()
    ]
    made.apply(
        Entry(
            0, "run", 0, 0.0, (), tuple(pieces), {SchemaId("s"): "schema"}, sources={"in": {"origin_s": 0.0, "next": 0}}
        )
    )
    return made


def plan_for(
    state: Book, estimates: Estimates, settings: Settings | None = None, slots: int = 64, g: Graph | None = None
) -> Plan:
    return make_plan(g or graph(), settings or Settings(), state, estimates, ACTIVE, slots, now_s=1.0)


def test_a_lane_gets_what_its_operator_serves_in_the_budget() -> None:
    plan = plan_for(book(a={0: 10_000, 1: 5}), Estimates({"a": 0.0001}), Settings(budget_s=0.2, max_budget_s=0.2))
    assert plan.takes == (("a", 0, 2000), ("a", 1, 5))


def test_an_operator_never_timed_is_tried_with_a_few_tuples() -> None:
    assert plan_for(book(a={0: 10_000}), Estimates()).takes == (("a", 0, FIRST_TRY),)


def test_a_tuple_slower_than_the_budget_is_still_served() -> None:
    assert plan_for(book(a={0: 10}), Estimates({"a": 30.0})).takes == (("a", 0, 1),)


def test_the_budget_grows_with_the_backlog_and_has_a_limit() -> None:
    settings = Settings(budget_s=0.2, max_budget_s=0.6)
    budgets = [
        plan_for(book(a={0: rows}), Estimates({"a": 0.001}), settings).budget_s for rows in (10, 800, 2000, 10_000_000)
    ]
    assert budgets == [0.2, 0.2, 0.5, 0.6]


def test_more_work_than_slots_can_do_in_the_budget_is_cut_evenly() -> None:
    state = book(b=dict.fromkeys(range(4), 1000))
    plan = plan_for(state, Estimates({"b": 0.001}), Settings(budget_s=0.2, max_budget_s=0.2), slots=2)
    assert plan.takes == tuple(("b", lane, 100) for lane in range(4))


def test_lanes_with_little_work_share_tasks_and_those_with_much_do_not() -> None:
    state = book(a={0: 100, 1: 100}, b=dict.fromkeys(range(4), 10))
    plan = plan_for(state, Estimates({"a": 0.001, "b": 0.00001, "in": 0.00001}))
    tasks = make_tasks(graph(), plan, state, tick=1, cores=2)
    shares = sorted(sorted((work.operator, work.lane) for work in task.lanes) for task in tasks)
    assert shares == [[("a", 0)], [("a", 1)], [("b", lane) for lane in range(4)]]
    assert sum(len(task.sources) for task in tasks) == 1


@given(st.lists(st.tuples(st.integers(1, 400), st.floats(1e-7, 1e-2)), min_size=1, max_size=8), st.integers(1, 4))
def test_every_lane_with_work_is_in_exactly_one_task(work: list[tuple[int, float]], cores: int) -> None:
    state = book(a={lane: rows for lane, (rows, _) in enumerate(work)})
    service_s = work[0][1]
    plan = plan_for(state, Estimates({"a": service_s}))
    tasks = make_tasks(graph(), plan, state, tick=1, cores=cores)
    served = [(lane.operator, lane.lane, sum(s.rows for s in lane.slices)) for task in tasks for lane in task.lanes]
    assert sorted(served) == sorted(plan.takes)
    for task in tasks:
        expected = [sum(s.rows for s in lane.slices) * service_s for lane in task.lanes]
        assert len(expected) <= 1 or max(expected) < SHARED_TASK_S


@given(
    st.dictionaries(st.integers(0, 3), st.integers(0, 60), min_size=4, max_size=4),
    st.sampled_from(["shuffle", "fields"]),
)
def test_senders_never_take_more_than_full_lanes_have_room_for(queued: dict[int, int], kind: str) -> None:
    g = graph(groupings.shuffle if kind == "shuffle" else groupings.fields("id"))
    state = book(a={0: 1000, 1: 1000}, b=queued)
    plan = plan_for(state, Estimates({"a": 1e-6, "b": 1e-6}), Settings(q_size=50), g=g)
    taken = sum(rows for name, _, rows in plan.takes if name == "a")
    free = max(0, 50 - max(queued.values()))
    assert taken <= (free * 4 if kind == "shuffle" else free)
    assert taken > 0 or free < 2


def test_a_plan_and_work_and_receipts_survive_their_journey_as_json() -> None:
    state = book(a={0: 100})
    plan = plan_for(state, Estimates({"a": 0.001}, {"a": 1.5}))
    assert Plan.from_json(plan.to_json()) == plan
    task = make_tasks(graph(), plan, state, tick=1, cores=2)[0]
    again = TaskWork.from_json(task.to_json())
    assert again.to_json() == task.to_json()
    assert all(isinstance(work, LaneWork) for work in again.lanes)
    receipt = Receipt(
        [OperatorReceipt("a", 1, processed=3, delivered={"b": {0: 1, 2: 2}})],
        appended=[Appended("b", 0, Slice("s", 0, 1, 2, SchemaId("k"), 0, 3))],
    )
    assert Receipt.from_json(receipt.to_json()) == receipt


def test_many_tuples_say_more_than_the_few_of_a_first_try() -> None:
    estimates = Estimates()
    estimates.learn("a", [OperatorReceipt("a", 0, processed=64, busy_s=0.064)])
    estimates.learn("a", [OperatorReceipt("a", 0, processed=6336, busy_s=0.006336)])
    assert estimates.service_s["a"] == pytest.approx((0.064 + 0.006336) / 6400)
    # And few of them after many no less than they did.
    estimates.learn("a", [OperatorReceipt("a", 0, processed=10, busy_s=0.01)])
    assert estimates.service_s["a"] > 0.0002


def test_estimates_follow_what_is_measured() -> None:
    estimates = Estimates()
    estimates.learn("a", [OperatorReceipt("a", 0, processed=10, busy_s=0.1, delivered={"b": {0: 20}})])
    assert (estimates.service_s["a"], estimates.fan_out["a"]) == (0.01, 2.0)
    for _ in range(30):
        estimates.learn("a", [OperatorReceipt("a", 0, processed=10, busy_s=0.2, delivered={"b": {0: 10}})])
    assert abs(estimates.service_s["a"] - 0.02) < 1e-4
    assert abs(estimates.fan_out["a"] - 1.0) < 1e-3
    estimates.learn("a", [OperatorReceipt("a", 0)])
    assert abs(estimates.service_s["a"] - 0.02) < 1e-4


def test_with_a_policy_ticks_grow_only_for_operators_that_have_all_their_replicas() -> None:
    settings, estimates = Settings(budget_s=0.2, max_budget_s=0.6), Estimates({"a": 0.001, "b": 0.001})

    def budget(active: dict[str, tuple[int, ...]], elastic: bool) -> float:
        state = book(a={0: 50_000})
        return make_plan(graph(), settings, state, estimates, active, 64, now_s=1.0, elastic=elastic).budget_s

    every_lane = {**ACTIVE, "a": tuple(range(8))}
    assert budget(ACTIVE, elastic=False) == 0.6
    assert budget(ACTIVE, elastic=True) == 0.2
    assert budget(every_lane, elastic=True) == 0.6


def test_lanes_of_an_operator_that_waits_share_a_few_tasks_side_by_side() -> None:
    flow = Topology("plan").source("in", sources.replay(constant(1000, 60)))
    flow.batch("a", lambda b: b, after="in", replicas=(1, 8), start=8, waits=True)
    flow.batch("b", lambda b: b, after="a", replicas=(1, 8), start=3)
    g = flow.output("out", after="b").build()
    active: dict[str, tuple[int, ...]] = {"a": tuple(range(8)), "b": (0, 1, 2), "out": (0,)}
    state = book(a=dict.fromkeys(range(8), 100), b=dict.fromkeys(range(3), 100))
    plan = make_plan(g, Settings(), state, Estimates({"a": 0.002, "b": 0.002}), active, 64, now_s=1.0)
    tasks = make_tasks(g, plan, state, 1, cores=2)
    together = [task for task in tasks if task.side_by_side]
    assert sorted(len(task.lanes) for task in together) == [2, 2, 2, 2]
    assert {work.operator for task in together for work in task.lanes} == {"a"}
    assert sorted(len(task.lanes) for task in tasks if task.lanes and not task.side_by_side) == [1, 1, 1]


def test_what_waits_decides_which_replica_is_least_loaded() -> None:
    g = graph(groupings.least_loaded)
    loads = Loads(g, td_s=1.0)
    loads.learn(observation(source("in", 10), operator("a", {"in": 10}), operator("b", {"a": 10}, service_ms=2)))
    waiting = {LaneId("b", 0): 100, LaneId("b", 2): 50}
    load, cost = loads.of(ACTIVE, ["a", "a", "in"], waiting)["least_loaded"]["b"]
    assert [round(value, 6) for value in load] == [0.2, 0.0, 0.1, 0.0]
    # Two lanes of a send: each takes the other to send as much as itself.
    assert cost == 2 * 0.002


def test_load_balancing_counts_the_last_interval_and_what_was_sent_since() -> None:
    loads = Loads(graph(groupings.load_balancing), td_s=1.0)
    lanes = (ReplicaObservation(0, True, 0, 300, 0, 0.6), ReplicaObservation(1, True, 0, 900, 0, 1.8))
    b = operator("b", {"a": 10}, service_ms=2, lanes=lanes, usable=0.8)
    loads.learn(observation(source("in", 10), operator("a", {"in": 10}), b))
    load, cost = loads.of(ACTIVE, [], {})["load_balancing"]["b"]
    assert [round(value, 6) for value in load] == [0.75, 1.0, 0.0, 0.0]
    assert cost == 0.0025


def test_what_operators_with_state_took_can_be_taken_again_after_the_book_has_forgotten_it() -> None:
    flow = Topology("plan").source("in", sources.replay(constant(1000, 60)))
    flow.dataframe("a", lambda frame: frame, after="in", replicas=2)
    flow.dataframe("b", lambda frame: frame, after="a", replicas=2).output("out", after="b")
    state, active = book(a={0: 100, 1: 20}, b={0: 30}), {"a": (0, 1), "b": (0, 1), "out": (0,)}
    settings = Settings(t_out_s=9.0)
    plan = make_plan(flow.build(), settings, state, Estimates({"a": 1.0, "b": 1e-6}), active, 64, now_s=1.0)
    first = make_frames(flow.build(), plan, state, 1, cores=2)
    again = taken(plan, state, frozenset({"a"}))
    state.apply(Entry(1, "run", 1, 1.0, plan.takes))
    read_back = Plan.from_json(json.loads(json.dumps(replace(plan, again=again).to_json())))
    assert read_back.again == again and again.entry == 0 and again.segments == {"000000000000-x.arrow"}
    repeated = make_again(again, state)
    assert set(repeated) == {"a"} and set(first) == {"a", "b"}

    def read(tasks: list[TaskWork]) -> set[tuple[int, Slice]]:
        return {(lane.lane, piece) for task in tasks for lane in task.lanes for piece in lane.slices}

    assert read(repeated["a"]) == read(first["a"])
    assert all((task.planned_s, task.t_out_s) == (plan.planned_s, 9.0) for task in repeated["a"])


@pytest.mark.parametrize(("stored_s", "due_s"), [(5.0, [6, 8]), (None, [2, 4, 6, 8])])
def test_a_repeated_tick_drops_what_its_plan_said_and_not_what_the_settings_say_today(
    store: Store, stored_s: float | None, due_s: list[int]
) -> None:
    flow = numbers(1).sink("out", sinks.dataframe(lambda frame, write: None), after="in").build()
    rows = pa.record_batch({"id": [0, 1, 2, 3], DUE: pa.array([2, 4, 6, 8], pa.timestamp("s", "UTC"))})
    appended, schemas = write_segments(store, 1, {LaneId("out", 0): [rows.cast(stored(flow["out"].schema))]})
    known, origin = {key: encode_schema(its) for key, its in schemas.items()}, {"origin_s": 0.0, "next": 0}
    state = Book()
    state.apply(Entry(0, "run", 0, 0.0, (), tuple(appended), known, sources={"in": origin}))
    made = make_plan(flow, Settings(t_out_s=stored_s), state, Estimates(), {"out": (0,)}, 64, now_s=10.0)
    state.plan = json.loads(json.dumps(made.to_json()))

    def taken_with(t_out_s: float) -> list[int]:
        again = continued_plan(flow, state, (), "base", t_out_s)
        program = Program(flow, Settings(t_out_s=t_out_s), str(store), base_id(store))
        (work,) = make_writes(flow, again, state, tick=1)
        given: list[pa.RecordBatch] = []
        take_lane(program, store, TaskWork.from_json(work.to_json()), lambda piece, _: given.append(piece))
        return [int(due.timestamp()) for piece in given for due in piece.column(DUE).to_pylist()]

    assert taken_with(3.0) == due_s
    # The settings speak for a plan that does not say.
    del state.plan["t_out_s"]
    assert taken_with(3.0) == [8]
