"""The outbox of a tick, after the commit: works and routing to hosts, and hosts that end."""

from elastream.engine.driver.dispatch.routing_facts import RoutingFacts
from elastream.engine.driver.dispatch.works import Dispatch
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.driver.placement.retirement import Retirement
from elastream.engine.hosts.link import HostLink
from elastream.engine.messages import Works
from elastream.fleet.engine_fleet import EngineFleet


class Outbox:
    """In the driver's thread only."""

    def __init__(
        self, hosts: HostTable, facts: RoutingFacts, link: HostLink, retirement: Retirement, fleet: EngineFleet
    ) -> None:
        self._hosts = hosts
        self._facts = facts
        self._link = link
        self._retirement = retirement
        self._fleet = fleet

    def send(self, dispatch: Dispatch, *, rerouted: bool) -> int:
        """Send routing, if it has changed, and works; gives the number of works."""
        if rerouted:
            routing = self._facts.routing()
            for record in self._hosts:
                self._link.send(record.host, routing)
        for host, works in dispatch.works.items():
            self._link.send(host, Works(works))
        return sum(map(len, dispatch.works.values()))

    def end_hosts(self, now: float) -> None:
        """Let go of hosts that have handed over, and ask for those that are missing."""
        self._retirement.step(now)
        self._fleet.step()
