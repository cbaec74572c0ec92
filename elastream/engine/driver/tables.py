"""The tables of a driver: one per subject, each with one owner. Made here, in the order in which they need each other."""

from dataclasses import dataclass

from elastream.engine.driver.commit.estimates import Estimates, waiting_hints
from elastream.engine.driver.dispatch.headroom import Headroom
from elastream.engine.driver.dispatch.lane_loads import LaneLoads
from elastream.engine.driver.dispatch.redirections import Redirections
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.routing_facts import RoutingFacts
from elastream.engine.driver.dispatch.suspects import Suspects
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.lanes.state import LedgerState
from elastream.settings import Settings
from elastream.topology import Graph


@dataclass(frozen=True)
class Tables:
    """Everything that a driver knows. Only its own thread may read or change it."""

    state: LedgerState
    """The state of the ledger."""
    estimates: Estimates
    hosts: HostTable
    groups: GroupTable
    homes: LaneHomes
    works: WorkTable
    keeper: StateKeeper
    replays: Replays
    redirections: Redirections
    loads: LaneLoads
    facts: RoutingFacts


def make_tables(graph: Graph, settings: Settings, state: LedgerState, interval_s: float) -> Tables:
    estimates = Estimates(state.estimates, waiting_hints(graph))
    hosts, groups = HostTable(), GroupTable(graph, state)
    homes = LaneHomes(hosts, groups)
    works = WorkTable(state, hosts, Headroom(graph, settings, state, estimates), Suspects())
    redirections = Redirections(graph)
    loads = LaneLoads(graph, state, estimates, redirections, interval_s, settings.queues.q_size)
    return Tables(
        state,
        estimates,
        hosts,
        groups,
        homes,
        works,
        StateKeeper(graph, state, hosts, homes, groups, settings.state.ring_s),
        Replays(graph, state),
        redirections,
        loads,
        RoutingFacts(graph, state, loads, redirections, works),
    )
