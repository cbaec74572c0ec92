"""The simulated driver plans as the engine's does: the same lanes, the same number of tuples, at the same time."""

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from simulations import TURNS

from elastream import Settings, Topology, sources
from elastream.engine.driver.dispatch.works import Dispatch
from elastream.engine.messages import ServeWork
from elastream.lanes import Appended, Entry, LaneId, LedgerState, SchemaId, Slice
from elastream.simulator.engine_planning import plan_lanes
from elastream.simulator.engine_works import BUDGET_S, Works, begin_works, forget_works
from elastream.simulator.model import Node, make_model
from elastream.simulator.profile import OperatorTimes
from elastream.testing.driver_bench import DriverBench
from elastream.topology import Graph
from elastream.workload import constant

LANES, HOSTS, WALL_S = 6, 2, 1000.0
ARRIVALS = constant(1000, 60)


def graph(waits: bool) -> Graph:
    flow = Topology("plan")
    flow.source("in", sources.replay(ARRIVALS))
    flow.map("a", lambda row: row, after="in", replicas=LANES, waits=waits)
    flow.output("out", after="a")
    return flow.build()


def real_planner(made: Graph, queued: list[int], service_s: float) -> DriverBench:
    state = LedgerState()
    schema = SchemaId("s")
    pieces = [Appended("a", lane, Slice("h1-1.arrow", 0, 10, 0, schema, 0, rows)) for lane, rows in enumerate(queued)]
    replay = {"in": {"origin_s": WALL_S, "next": ARRIVALS.total, "open": []}}
    appended = [piece for piece in pieces if piece.slice.rows]
    planner = DriverBench(made, state, service_s={"a": service_s}, hosts=HOSTS)
    state.apply(Entry(0, WALL_S, appended=appended, sizes={"a": LANES}, sources=replay, schemas={schema: "schema"}))
    # One host after another, as in the model.
    planner.tables.homes.spread(LaneId("a", lane) for lane in range(LANES))
    planner.begin(WALL_S)
    return planner


def simulated_works(made: Graph, queued: list[int], service_s: float, waits: bool) -> Works:
    times = {"in": OperatorTimes(1e-6, 1.0, 0.0), "a": OperatorTimes(service_s, 0.0 if waits else 1.0, 0.0)}
    model = make_model(made, times, {"in": ARRIVALS}, nodes=(Node(HOSTS),))
    works, _ = begin_works(model, model.begin({"a": LANES}), TURNS._replace(cores=HOSTS))
    works.lanes["queued"] = queued
    works.clock[BUDGET_S] = Settings().works.budget_s
    return works


def by_engine(planned: Dispatch) -> dict[int, int]:
    works = [work for works in planned.works.values() for work in works if isinstance(work, ServeWork)]
    return {rows.lane: sum(piece.rows for piece in rows.slices) for work in works for rows in work.lanes}


def by_model(works: Works, at_s: float) -> dict[int, int]:
    plan_lanes(TURNS._replace(cores=HOSTS), works, np.zeros(1), 0, at_s, np.random.default_rng(1))
    return {lane: int(rows) for lane, rows in enumerate(works.lanes["taken"]) if rows}


@settings(deadline=None, max_examples=60, derandomize=True, phases=[Phase.generate])
@given(
    queued=st.lists(st.integers(0, 40), min_size=LANES, max_size=LANES),
    service_s=st.sampled_from([0.0001, 0.0008, 0.005, 0.03]),
    waits=st.booleans(),
    later_s=st.sampled_from([0.003, 0.019, 0.021]),
)
def test_the_model_plans_as_the_planner_does(queued: list[int], service_s: float, waits: bool, later_s: float) -> None:
    made = graph(waits)
    planner, works = real_planner(made, queued, service_s), simulated_works(made, queued, service_s, waits)
    planned = planner.plan(0.0, WALL_S)
    first = by_engine(planned)
    assert by_model(works, 0.0) == first
    # All of them are done; what is left is served at once when it is enough, else a pace after.
    left = [rows - first.get(lane, 0) for lane, rows in enumerate(queued)]
    planner.tables.state.apply(Entry(1, WALL_S, consumed=[("a", lane, rows) for lane, rows in first.items()]))
    for known in list(planner.under_way):
        planner.done(known, later_s)
    forget_works(works, np.ones(LANES, np.bool_))
    works.lanes["queued"] = left
    works.hosts["free_s"] = 0.0
    assert by_model(works, later_s) == by_engine(planner.plan(later_s, WALL_S))
