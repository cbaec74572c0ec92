"""Planning without hosts: how much each lane gets, which lanes share a work, and what full lanes hold back."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream import QueueSettings, Settings, Topology, WorkSettings, groupings, rules, sources
from elastream.connectors.query.task import EdgeRouting, EdgeWork, read_routing, read_work, to_text
from elastream.engine import messages
from elastream.engine.driver.commit.entries import EntryBuilder
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.dispatch.lane_loads import LaneLoads
from elastream.engine.driver.dispatch.works import Dispatch, Moment
from elastream.engine.driver.placement.hosts import HostRecord
from elastream.engine.driver.tables import make_tables
from elastream.engine.messages import BuryTuples, LaneReceipt, LaneRows, Receipt, Receipts, Routing, ServeWork, Works
from elastream.lanes import Appended, Entry, LaneId, LedgerState, SchemaId, Slice, Store
from elastream.testing.driver_bench import DriverBench
from elastream.topology import Graph
from elastream.workload import constant

WALL_S = 1000.0


def graph(grouping: groupings.Grouping = groupings.shuffle, waits: bool = False) -> Graph:
    flow = Topology("plan")
    flow.source("in", sources.replay(constant(1000, 60)))
    flow.map("a", lambda row: row, after="in", replicas=(1, 8), start=2, waits=waits)
    flow.map("b", lambda row: row, after="a", grouping=grouping, replicas=(1, 8), start=4)
    flow.sink("end", lambda batch, delivery: None, after="b", replicas=2)
    return flow.build()


def appended(name: str, lane: int, rows: int, offset: int = 0) -> Appended:
    return Appended(name, lane, Slice("h1-000001.arrow", offset, 10, 0, SchemaId("s"), 0, rows))


def state_with(**queued: dict[int, int]) -> LedgerState:
    """A state in which so many tuples wait: state_with(a={0: 100}); the source is read to its end."""
    state = LedgerState()
    pieces = [appended(name, lane, rows) for name, lanes in queued.items() for lane, rows in lanes.items() if rows]
    sizes = {"a": 2, "b": 4, "end": 2}
    replay = {"in": {"origin_s": WALL_S, "next": 60_000, "open": []}}
    state.apply(Entry(0, WALL_S, appended=pieces, sizes=sizes, sources=replay, schemas={SchemaId("s"): "schema"}))
    return state


def planner_for(
    state: LedgerState, service_s: dict[str, float], limits: Settings | None = None, hosts: int = 2, **how: Any
) -> DriverBench:
    planner = DriverBench(graph(**how), state, settings=limits, service_s=service_s, hosts=hosts)
    planner.begin(WALL_S)
    return planner


def taken(planned: Dispatch) -> dict[tuple[str, int], int]:
    works = [work for works in planned.works.values() for work in works if isinstance(work, ServeWork)]
    return {
        (work.operator, rows.lane): sum(piece.rows for piece in rows.slices) for work in works for rows in work.lanes
    }


def test_a_lane_gets_what_its_operator_serves_in_the_budget() -> None:
    planner = planner_for(state_with(a={0: 10_000, 1: 900}), {"a": 0.0001}, Settings(works=WorkSettings(budget_s=0.2)))
    assert taken(planner.plan(0.0, WALL_S)) == {("a", 0): 2000, ("a", 1): 900}


def test_an_operator_never_timed_is_tried_with_a_few_tuples_the_first_of_them_alone() -> None:
    planned = planner_for(state_with(a={0: 10_000}), {}).plan(0.0, WALL_S)
    assert taken(planned) == {("a", 0): rules.FIRST_TRY}
    [work] = next(iter(planned.works.values()))
    assert isinstance(work, ServeWork) and work.chunk == 1


def test_a_tuple_slower_than_the_budget_is_still_served() -> None:
    assert taken(planner_for(state_with(a={0: 10}), {"a": 30.0}).plan(0.0, WALL_S)) == {("a", 0): 1}


@pytest.mark.parametrize(("turn_s", "budget_s"), [(0.0, 0.05), (0.001, 0.05), (0.02, 0.4), (0.5, 1.0)])
def test_a_slow_driver_or_storage_makes_works_longer_up_to_a_limit(turn_s: float, budget_s: float) -> None:
    assert rules.budget(0.05, 1.0, turn_s) == pytest.approx(budget_s)


def test_a_lane_has_at_most_one_work_under_way_and_a_quiet_one_waits_for_its_pace() -> None:
    state = state_with(a={0: 100})
    planner = planner_for(state, {"a": 0.00001})
    assert taken(planner.plan(0.0, WALL_S)) == {("a", 0): 100}
    state.apply(Entry(1, WALL_S, appended=[appended("a", 0, 5, 10)]))
    planner.dispatch.schedule.filled([LaneId("a", 0)], 0.001)
    assert not planner.plan(0.001, WALL_S).works, "a work of this lane is under way"
    [work] = planner.under_way
    state.apply(Entry(2, WALL_S, consumed=[("a", 0, 100)]))
    planner.done(work, 0.002)
    assert not planner.plan(0.002, WALL_S).works, "the lane had a work two milliseconds ago, and has little to do"
    assert taken(planner.plan(rules.LANE_PACE_S, WALL_S)) == {("a", 0): 5}


def test_a_lane_with_enough_to_do_does_not_wait_for_its_pace() -> None:
    state = state_with(a={0: 1000})
    planner = planner_for(state, {"a": 0.001})
    first = taken(planner.plan(0.0, WALL_S))
    assert first == {("a", 0): 50}
    [work] = planner.under_way
    state.apply(Entry(1, WALL_S, consumed=[("a", 0, 50)]))
    planner.done(work, 0.001)
    assert taken(planner.plan(0.001, WALL_S)) == {("a", 0): 50}


def test_quiet_lanes_of_one_operator_in_one_host_share_a_work_and_busy_ones_do_not() -> None:
    planned = planner_for(
        state_with(a={0: 100, 1: 100}, b=dict.fromkeys(range(4), 10)), {"a": 0.001, "b": 0.00001}, hosts=1
    ).plan(0.0, WALL_S)
    works = [work for works in planned.works.values() for work in works if isinstance(work, ServeWork)]
    shares = sorted((work.operator, len(work.lanes)) for work in works)
    # Two computing works is what a host has at most; the lanes of b wait together for their turn.
    assert shares == [("a", 1), ("a", 1)]
    quiet = planner_for(state_with(b=dict.fromkeys(range(4), 10)), {"b": 0.00001}, hosts=1).plan(0.0, WALL_S)
    [[work]] = quiet.works.values()
    assert isinstance(work, ServeWork) and len(work.lanes) == 4


def test_operators_that_wait_get_a_seat_per_lane_and_those_that_compute_two_works_per_host() -> None:
    lanes = dict.fromkeys(range(8), 100)
    state = state_with(a=lanes)
    waiting = planner_for(state, {"a": 0.002}, waits=True)
    assert len(taken(waiting.plan(0.0, WALL_S))) == 8
    computing = planner_for(state_with(a=lanes), {"a": 0.002})
    planned = computing.plan(0.0, WALL_S)
    assert {host: len(works) for host, works in planned.works.items()} == {0: 2, 1: 2}


def test_the_engine_finds_out_by_itself_who_waits_and_who_computes() -> None:
    planner = planner_for(state_with(), {}, waits=True)
    assert not planner.tables.estimates.computes("a") and planner.tables.estimates.computes("b")
    for _ in range(10):
        planner.tables.estimates.learn(Receipt(1, [LaneReceipt("a", 0, processed=10, busy_s=0.1, cpu_s=0.099)]))
        planner.tables.estimates.learn(Receipt(1, [LaneReceipt("b", 0, processed=10, busy_s=0.1, cpu_s=0.001)]))
    assert planner.tables.estimates.computes("a") and not planner.tables.estimates.computes("b")


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(0, 3), st.integers(0, 60), min_size=4, max_size=4),
    st.sampled_from(["shuffle", "fields"]),
)
def test_senders_never_take_more_than_full_lanes_have_room_for(queued: dict[int, int], kind: str) -> None:
    grouping = groupings.shuffle if kind == "shuffle" else groupings.fields("id")
    state = state_with(a={0: 1000, 1: 1000}, b=queued)
    planner = planner_for(state, {"a": 1e-6, "b": 1e-6}, Settings(queues=QueueSettings(q_size=50)), grouping=grouping)
    taken_of_a = sum(rows for (name, _), rows in taken(planner.plan(0.0, WALL_S)).items() if name == "a")
    free = max(0, 50 - max(queued.values()))
    assert taken_of_a <= (free * 4 if kind == "shuffle" else free)
    assert taken_of_a > 0 or free == 0


def test_a_tuple_of_which_more_come_than_a_lane_may_hold_still_passes() -> None:
    flow = Topology("plan")
    flow.source("in", sources.replay(constant(1000, 60)))
    flow.flat_map("a", lambda row: [row] * 100, after="in", replicas=2)
    flow.map("b", lambda row: row, after="a", replicas=1).output("out")
    made, state = flow.build(), LedgerState()
    replay = {"in": {"origin_s": WALL_S, "next": 60_000, "open": []}}
    pieces = [appended("a", 0, 10), appended("a", 1, 10, 10)]
    state.apply(Entry(0, WALL_S, appended=pieces, sizes={"a": 2, "b": 1, "out": 1}, sources=replay))
    state.estimates["a"] = (0.01, 100.0)
    planner = DriverBench(made, state, settings=Settings(queues=QueueSettings(q_size=50)), hosts=1)
    planner.begin(WALL_S)
    # One at a time, and only while nobody else sends.
    assert taken(planner.plan(0.0, WALL_S)) == {("a", 0): 1}


def test_what_a_sink_is_given_is_said_before_and_given_again_as_it_was() -> None:
    state = state_with(end={0: 40})
    planner = planner_for(state, {"end": 0.01})
    planned = planner.plan(0.0, WALL_S)
    [given_rows] = planned.given
    assert (given_rows.operator, given_rows.lane, given_rows.rows) == ("end", 0, 5)
    assert [work.lanes for work in planner.under_way.values()] == [{LaneId("end", 0): 5}]
    planner.lost(next(iter(planned.works)), 0.1)
    assert not planner.under_way
    state.apply(Entry(1, WALL_S, appended=[appended("end", 0, 100, 10)]))
    again = planner.plan(1.0, WALL_S + 1)
    # The same rows, and nothing new to write down.
    assert taken(again) == {("end", 0): 5} and not again.given
    [[work]] = again.works.values()
    assert isinstance(work, ServeWork) and work.planned_s == WALL_S and work.budget_s == 0.0


def test_a_work_that_ended_its_host_is_tried_alone_in_parts_and_its_tuple_is_buried() -> None:
    state = state_with(a={0: 8})
    planner = planner_for(state, {"a": 0.01})
    tried = []
    for turn in range(20):
        planned = planner.plan(turn * 1.0, WALL_S)
        [(host, [work])] = planned.works.items()
        assert isinstance(work, ServeWork | BuryTuples)
        rows = work.lane if isinstance(work, BuryTuples) else work.lanes[0]
        tried.append((sum(piece.rows for piece in rows.slices), isinstance(work, BuryTuples)))
        if isinstance(work, BuryTuples):
            break
        planner.lost(host, turn + 0.5)
        planner.join(host)
    assert tried == [(5, False), (5, False), (1, False), (1, False), (1, False), (1, True)]


def test_an_innocent_work_that_shared_a_host_with_a_guilty_one_is_cleared_by_its_receipt() -> None:
    state = state_with(a={0: 5, 1: 5})
    planner = planner_for(state, {"a": 0.01}, hosts=1)
    planner.plan(0.0, WALL_S)
    planner.lost(0, 0.1)
    planner.join(0)
    first = planner.plan(1.0, WALL_S)
    # Both are suspected, and each has the host for itself.
    assert len(taken(first)) == 1 and planner.tables.hosts[0].isolated
    [work] = planner.under_way
    state.apply(Entry(1, WALL_S, consumed=[("a", planner.under_way[work].lanes.popitem()[0].lane, 5)]))
    planner.done(work, 1.1)
    assert len(taken(planner.plan(2.0, WALL_S))) == 1


def test_sources_make_what_is_due_and_lost_tuples_are_made_again() -> None:
    state = LedgerState()
    state.apply(Entry(0, WALL_S, sizes={"a": 2, "b": 4, "end": 2}))
    planner = planner_for(state, {"in": 1e-6})
    state.apply(Entry(1, WALL_S, sources=planner.tables.replays.begin(WALL_S)))
    planned = planner.plan(0.0, WALL_S + 0.5)
    [(host, [work])] = planned.works.items()
    assert isinstance(work, messages.SourceWork) and (work.first, work.stop) == (0, 500)
    planner.lost(host, 0.1)
    [[again]] = planner.plan(0.2, WALL_S + 0.6).works.values()
    assert isinstance(again, messages.SourceWork) and (again.first, again.stop) == (0, 500)


def test_works_and_receipts_survive_their_journey() -> None:
    piece = Slice("s", 0, 1, 2, SchemaId("k"), 0, 3)
    work = ServeWork(1, "a", [LaneRows(0, 7, [piece])], 1.0, 0.1, 5, True, 3, None, {"b": [1, 2]})
    assert messages.decode_to_host(messages.encode(Works([work]))) == Works([work])
    receipt = Receipt(1, [LaneReceipt("a", 1, processed=3)], appended=[Appended("b", 0, piece)])
    assert messages.decode_to_driver(messages.encode(Receipts([receipt], ["s"]))) == Receipts([receipt], ["s"])


def test_estimates_follow_the_newest_tuples_and_many_say_more_than_few() -> None:
    estimates = Estimates()
    piece = appended("b", 0, 20)
    estimates.learn(Receipt(1, [LaneReceipt("a", 0, processed=10, busy_s=0.1)], appended=[piece]))
    assert (estimates.service_s["a"], estimates.fan_out["a"]) == (0.01, 2.0)
    estimates.learn(Receipt(2, [LaneReceipt("a", 0, processed=6390, busy_s=0.006336)]))
    assert estimates.service_s["a"] == pytest.approx((0.1 + 0.006336) / 6400)
    for _ in range(100):
        estimates.learn(Receipt(3, [LaneReceipt("a", 0, processed=10, busy_s=0.2)]))
    assert estimates.service_s["a"] == pytest.approx(0.02, rel=1e-3)
    estimates.learn(Receipt(4, [LaneReceipt("a", 0)]))
    assert estimates.service_s["a"] == pytest.approx(0.02, rel=1e-3)


def served(loads: LaneLoads, rows: dict[int, int]) -> None:
    """In an interval of a second, lanes of b served so many rows of 2 ms."""
    loads.step(0.0)
    loads.add(
        TickResult(receipts=[LaneReceipt("b", n, processed=count, busy_s=count * 0.002) for n, count in rows.items()])
    )
    loads.step(1.0)


def test_what_waits_decides_which_replica_is_least_loaded() -> None:
    made = graph(groupings.least_loaded)
    state = state_with(b={0: 100, 2: 50})
    loads = make_tables(made, Settings(), state, 1.0).loads
    served(loads, {0: 10})
    [load] = loads.for_sender("a", Counter({"b": 1}))
    assert (load.grouping, load.target) == ("least_loaded", "b")
    assert [round(value, 6) for value in load.load] == [0.2, 0.0, 0.1, 0.0]
    # Another work sends too: each takes the other to send as much as itself.
    assert load.cost == 2 * 0.002


def test_load_balancing_counts_the_last_interval_and_what_was_sent_since() -> None:
    state = state_with()
    loads = make_tables(graph(groupings.load_balancing), Settings(), state, 1.0).loads
    served(loads, {0: 300, 1: 900})
    [load] = loads.for_sender("a", Counter())
    assert [round(value, 6) for value in load.load] == [0.6, 1.0, 0.0, 0.0]
    assert load.cost == 0.002
    loads.add(TickResult(sent={LaneId("b", 2): Counter(a=50)}))
    [load] = loads.for_sender("a", Counter())
    assert [round(value, 6) for value in load.load] == [0.6, 1.0, 0.1, 0.0]


def test_lanes_are_spread_over_executors_and_few_move_when_a_host_comes_or_goes() -> None:
    lanes = [LaneId("a", number) for number in range(8)]
    planner = DriverBench(graph(), state_with(a=dict.fromkeys(range(8), 1)), hosts=0)
    hosts, home = planner.tables.hosts, planner.tables.homes.home
    for host, executor in enumerate(["x", "x", "y", "y"]):
        hosts.join(HostRecord(host, f"h{host}", executor=executor))
    planner.tables.homes.spread(lanes)
    first_two = [hosts[home(lane) or 0].executor for lane in lanes[:2]]
    assert sorted(first_two) == ["x", "y"]
    assert sorted(Counter(map(home, lanes)).values()) == [2, 2, 2, 2]

    before = {lane: home(lane) for lane in lanes}
    planner.lost(2, 0.0)
    moved = [lane for lane in lanes if home(lane) != before[lane]]
    assert moved == [lane for lane in lanes if before[lane] == 2]

    before = {lane: home(lane) for lane in lanes}
    planner.join(2, "z")
    assert sorted(Counter(map(home, lanes)).values()) == [2, 2, 2, 2]
    assert sum(home(lane) != before[lane] for lane in lanes) == 2


def test_what_the_tasks_of_the_edges_are_told_is_the_same_behind_its_way_as_text() -> None:
    rows = LaneRows(2, 40, [Slice("s", 0, 1, 2, SchemaId("k"), 0, 3, b"\x05\x04\x00\x00")])
    work = EdgeWork(7, ServeWork(0, "a", [rows], 1.5, 0.0, 10, False, 0), {SchemaId("k"): "text"})
    assert read_work(to_text(work)) == work
    routing = EdgeRouting(7, 1.5, Routing({"a": 3}, {"a": [0, 1, 2]}), 4)
    assert read_routing(to_text(routing)) == routing


def test_a_suspected_lane_that_has_no_room_behind_it_keeps_no_host_from_making_room() -> None:
    state = state_with(a={0: 5}, b={0: 5, 1: 5, 2: 5, 3: 5})
    planner = planner_for(state, {"a": 0.001, "b": 0.001}, Settings(queues=QueueSettings(q_size=5)), hosts=1)
    planner.tables.works.suspects.host_died(LaneId("a", 0), 0, 1, alone=False, whole=False)
    # The only host was kept free for it when there still was room.
    planner.tables.hosts[0].isolated = True
    served = [taken(planner.plan(at, WALL_S)) for at in (1.0, 2.0)]
    assert ("b", 0) in {**served[0], **served[1]}


def test_tuples_that_are_discarded_are_not_suspected_any_more(tmp_path: Path) -> None:
    state = state_with(a={0: 5}, b={0: 5})
    planner = planner_for(state, {"a": 0.001, "b": 0.001}, hosts=1)
    planner.tables.works.suspects.host_died(LaneId("a", 0), 0, 5, alone=False, whole=False)
    # The only host is kept free for what is dropped now.
    planner.tables.hosts[0].isolated = True
    planner.tables.works.discard(["a"])
    tables, store = planner.tables, Store(str(tmp_path))
    housekeeping = Housekeeping(store, Settings(), (), inline=True)
    entries = EntryBuilder(state, tables.estimates, tables.works, tables.replays, housekeeping)
    entry = entries.done(TickResult(), [], [], {}, Moment(10.0, WALL_S, running=True, budget_s=0.05))
    assert entry is not None and entry.consumed == [("a", 0, 5)]
    state.apply(entry)
    assert not planner.tables.works.suspects and taken(planner.plan(11.0, WALL_S)) == {("b", 0): 5}
