"""Hosts that are given back: each hands over its lanes, with their state, and ends when it has nothing left."""

import logging

from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.hosts.link import HostLink

log = logging.getLogger("elastream.tick")

PATIENCE_S = 5.0
"""How long a host may take to hand over. Then it is ended: nothing is lost, but its keys wait until they are restored elsewhere."""


class Retirement:
    """Stateless lanes find another home with their next work; nothing waits for them. In the driver's thread only."""

    def __init__(self, hosts: HostTable, homes: LaneHomes, groups: GroupTable, link: HostLink) -> None:
        self._hosts = hosts
        self._homes = homes
        self._groups = groups
        self._link = link
        self._leaving: dict[int, float] = {}
        """Hosts by number, and until when each may take its time."""
        self._now = 0.0

    def begin(self, host: int) -> None:
        self._leaving[host] = self._now + PATIENCE_S
        self._homes.host_leaves(host)

    def step(self, now: float) -> None:
        """End the hosts that have handed over everything, and those that take too long, as if they had died."""
        self._now = now
        for host, until in list(self._leaving.items()):
            # One may have died on its way out, and another process has its number: that one leaves, too.
            self._homes.host_leaves(host)
            empty = self._is_empty(host)
            if not empty and now > until:
                log.warning("host %d did not hand over within %g s; its state is restored elsewhere", host, PATIENCE_S)
            if empty or now > until:
                del self._leaving[host]
                self._link.end(host)

    def _is_empty(self, host: int) -> bool:
        record = self._hosts.get(host)
        if record is None:
            # It died on its way out; its works went back to their lanes.
            return True
        if record.works or self._groups.concerns(host) or self._groups.is_primary(host):
            return False
        # Lanes without state, or that were switched off, have nothing to hand over.
        lanes = [lane for lane in self._homes.lanes_in(host) if lane.operator in self._groups.stateful]
        return not any(map(self._groups.of_lane, lanes))
