"""Seats under contention: every source and every lane that is ready gets its turn, planned without hosts and clocks."""

from collections import Counter

from elastream import QueueSettings, Settings, Topology, sources
from elastream.engine.messages import ServeWork, SourceWork, Work
from elastream.lanes import Appended, Entry, LaneId, LedgerState, SchemaId, Slice
from elastream.testing.driver_bench import DriverBench
from elastream.workload import constant

WALL_S = 1000.0
WORK_S = 0.05

Served = Counter[tuple[str, int]]


class Crowd:
    """A planner with more to do than its hosts can: each host ends one work per step, the oldest, and lanes stay full."""

    def __init__(
        self, *, sources_: int, lanes: int, hosts: int, due: bool = True, limits: Settings | None = None
    ) -> None:
        """Tuples of sources are due always, or never."""
        flow = Topology("crowd")
        names = [f"in{number}" for number in range(sources_)]
        for name in names:
            flow.source(name, sources.replay(constant(1000, 600)))
        flow.map("a", lambda row: row, after=names, replicas=max(1, lanes))
        graph = flow.output("out", after="a").topology.build()
        self.state = LedgerState()
        pieces = [
            Appended("a", lane, Slice("h1-000001.arrow", 0, 10, 0, SchemaId("s"), 0, 10**6)) for lane in range(lanes)
        ]
        self.state.apply(
            Entry(0, WALL_S, appended=pieces, sizes={"a": max(1, lanes), "out": 1}, schemas={SchemaId("s"): "schema"})
        )
        timed = dict.fromkeys((*names, "a"), 0.001)
        self.planner = DriverBench(graph, self.state, settings=limits, service_s=timed, hosts=hosts)
        self.state.apply(Entry(1, WALL_S, sources=self.planner.tables.replays.begin(WALL_S)))
        self.planner.dispatch.schedule.begin(0.0)
        self._under_way: dict[int, list[Work]] = {host: [] for host in range(hosts)}
        self._steps, self._due_s = 0, 5.0 if due else -5.0
        self.served: Served = Counter()

    def step(self) -> None:
        self._steps += 1
        now = self._steps * WORK_S
        for works in self._under_way.values():
            if works:
                self._end(works.pop(0), now)
        for host, works in self.planner.plan(now, WALL_S + self._due_s + now).works.items():
            self._under_way[host] += works

    def _end(self, work: Work, now: float) -> None:
        if isinstance(work, SourceWork):
            self.served[work.source, work.part] += 1
        else:
            assert isinstance(work, ServeWork)
            for rows in work.lanes:
                self.served[work.operator, rows.lane] += 1
                taken = sum(piece.rows for piece in rows.slices)
                self.state.apply(Entry(self.state.entry + 1, WALL_S, consumed=[(work.operator, rows.lane, taken)]))
        self.planner.done(work.id, now)


def test_a_hundred_sources_on_twenty_hosts_all_get_their_turn() -> None:
    crowd = Crowd(sources_=100, lanes=0, hosts=20)
    for _ in range(2 + 10 * 5):
        crowd.step()
    # Twenty works per step: every source had ten in fifty steps, or nearly.
    assert len(crowd.served) == 100
    assert max(crowd.served.values()) - min(crowd.served.values()) <= 1


def test_lanes_beyond_two_per_host_are_served_in_turn() -> None:
    crowd = Crowd(sources_=1, lanes=14, hosts=2, due=False)
    for _ in range(50):
        crowd.step()
    for host in (0, 1):
        works = [crowd.served[lane] for lane in crowd.planner.tables.homes.lanes_in(host) if lane.operator == "a"]
        assert len(works) > 2 and max(works) - min(works) <= 1
    assert sum(crowd.served.values()) == 2 * 49


def test_sources_that_are_always_due_leave_lanes_half_of_a_host_and_lanes_leave_sources_the_other() -> None:
    crowd = Crowd(sources_=6, lanes=6, hosts=1)
    for _ in range(2 + 60):
        crowd.step()
    reads = [crowd.served[f"in{number}", 0] for number in range(6)]
    lanes = [crowd.served["a", lane] for lane in range(6)]
    assert max(reads) - min(reads) <= 1 and max(lanes) - min(lanes) <= 1
    assert abs(sum(reads) - sum(lanes)) <= 2


def test_sources_without_lanes_that_wait_use_both_seats_of_a_host() -> None:
    crowd = Crowd(sources_=3, lanes=0, hosts=1)
    crowd.step()
    assert crowd.planner.tables.hosts[0].computing == 2


def test_a_source_whose_host_is_busy_does_not_hold_up_one_whose_host_is_not() -> None:
    crowd = Crowd(sources_=6, lanes=0, hosts=2)
    for _ in range(5):
        crowd.step()
    tables = crowd.planner.tables
    first = tables.replays.free()[0]
    busy = tables.homes.home(LaneId(*first))
    assert busy is not None and tables.hosts[busy].computing == 2
    # The other host has one more seat.
    other = 1 - busy
    crowd.planner.done(min(tables.hosts[other].works), 1.0)
    assert set(crowd.planner.plan(1.0, WALL_S + 10).works) == {other}


def test_sources_take_turns_for_the_room_in_a_full_lane() -> None:
    crowd = Crowd(sources_=4, lanes=0, hosts=4, limits=Settings(queues=QueueSettings(q_size=40)))
    for _ in range(12):
        crowd.step()
    reads = [crowd.served[f"in{number}", 0] for number in range(4)]
    assert min(reads) >= 2 and max(reads) - min(reads) <= 1
