"""A driver's tables and dispatch without hosts, storage or clocks: for tests of which works are sent, where and when."""

from collections.abc import Mapping

from elastream.engine.driver.build import make_dispatch
from elastream.engine.driver.dispatch.works import Dispatch, Moment, UnderWay
from elastream.engine.driver.placement.hosts import HostRecord
from elastream.engine.driver.tables import make_tables
from elastream.lanes.state import LedgerState
from elastream.settings import Settings
from elastream.topology import Graph


class DriverBench:
    """Plans for hosts that exist on paper. A test says which works are done and which hosts are lost."""

    def __init__(
        self,
        graph: Graph,
        state: LedgerState,
        *,
        settings: Settings | None = None,
        service_s: Mapping[str, float] | None = None,
        hosts: int = 2,
    ) -> None:
        """`service_s`: seconds per tuple of operators that were timed."""
        state.estimates.update({name: (seconds, 1.0) for name, seconds in (service_s or {}).items()})
        self.settings = settings or Settings()
        self.tables = make_tables(graph, self.settings, state, 1.0)
        self.dispatch = make_dispatch(graph, self.settings, self.tables)
        for host in range(hosts):
            self.join(host)

    def join(self, host: int, executor: str = "") -> None:
        self.dispatch.changes.joined(HostRecord(host, f"h{host}", executor=executor))

    def begin(self, wall_s: float) -> None:
        """Let the replays begin, and look at all lanes."""
        self.tables.replays.begin(wall_s)
        self.dispatch.schedule.begin(0.0)

    def plan(self, now: float, wall_s: float) -> Dispatch:
        """The works that are due, which count as sent."""
        moment = Moment(now, wall_s, running=True, budget_s=self.settings.works.budget_s)
        dispatch = self.dispatch.dispatcher.dispatch(moment)
        self.tables.state.plan(dispatch.given, dispatch.offer)
        return dispatch

    def done(self, work: int, now: float) -> None:
        self.dispatch.returned.done(work, now)

    def lost(self, host: int, now: float) -> None:
        self.dispatch.changes.lost(host, now, quietly=True)

    @property
    def under_way(self) -> dict[int, UnderWay]:
        return {work.id: work for work in self.tables.works.all()}
