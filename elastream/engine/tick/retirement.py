"""Hosts that are given back: each hands over its lanes, with what they remember, and ends when it has nothing left."""

import logging

from elastream.engine.hosts.link import HostLink
from elastream.engine.tick.roster import Roster
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.transfers import Transfers

log = logging.getLogger("elastream.tick")

PATIENCE_S = 5.0
"""How long a host may take to hand over. Then it is ended: nothing is lost by that, but its keys stand still until they are known elsewhere."""


class Retirement:
    """In the tick's thread. Lanes that remember nothing find another home with their next work; nothing stands still."""

    def __init__(self, roster: Roster, keeper: StateKeeper, transfers: Transfers, hosts: HostLink) -> None:
        self._roster = roster
        self._keeper = keeper
        self._transfers = transfers
        self._hosts = hosts
        self._leaving: dict[int, float] = {}
        """Hosts, and until when each may take its time."""
        self._now = 0.0

    def begin(self, host: int) -> None:
        self._leaving[host] = self._now + PATIENCE_S
        self._roster.leave(host)

    def step(self, now: float) -> None:
        """End those that have handed over everything; and one that does not come to an end, as if it had died."""
        self._now = now
        for host, until in list(self._leaving.items()):
            seats = self._roster.hosts.get(host)
            if seats is not None and not seats.leaving:
                # It died on its way out, and another process has its number: that one goes, too.
                self._roster.leave(host)
            left = self._has_left(host)
            if not left and now > until:
                log.warning(
                    "host %d did not hand over within %g s; what it has is learned anew elsewhere", host, PATIENCE_S
                )
            if left or now > until:
                del self._leaving[host]
                self._hosts.end(host)

    def _has_left(self, host: int) -> bool:
        seats = self._roster.hosts.get(host)
        if seats is None:
            # It died on its way out; what it had went back to its lanes.
            return True
        if seats.works or self._transfers.concerns(host) or self._keeper.has_live(host):
            return False
        # Lanes that remember nothing, or were switched off, have nothing to hand over.
        lanes = [lane for lane in self._roster.lanes_in(host) if lane.operator in self._keeper.operators]
        return not any(map(self._keeper.groups_of, lanes))
