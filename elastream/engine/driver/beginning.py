"""The beginning of a run: hosts join, operators are timed, replays get their origin."""

import logging
from collections.abc import Callable

from elastream.engine.clock import Clock
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.works import UnderWay, WorkTable
from elastream.engine.driver.lifecycle import Phase, RunLife
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.hosts.link import HostLink
from elastream.engine.messages import TimeWork, Works
from elastream.errors import RunFailed
from elastream.fleet.engine_fleet import EngineFleet

log = logging.getLogger("elastream.tick")

HOSTS_S = 120.0
"""How long the first host may take to join: a machine may have to be started for it."""

ALL_HOSTS_S = 5.0
"""How long the others may take after the first, before the stream begins without them."""

TURN_S = 0.05

MakeTick = Callable[[float], object]
"""Waits for events, at most this number of seconds, and makes a tick of them."""


class HostsJoin:
    """Waits for the hosts of a run. In the driver's thread only."""

    def __init__(self, hosts: HostTable, fleet: EngineFleet, link: HostLink, life: RunLife, clock: Clock) -> None:
        self._hosts = hosts
        self._fleet = fleet
        self._link = link
        self._life = life
        self._clock = clock

    def wait(self, make_tick: MakeTick) -> None:
        """Until all hosts have joined, or the first has and the others take long. Raises if none joins."""
        started = self._clock.now()
        first_s: float | None = None
        self._fleet.step()
        while len(self._hosts) < self._fleet.hosts and self._life.phase is Phase.STARTING:
            now = self._clock.now()
            if first_s is None and len(self._hosts):
                first_s = now
            if first_s is not None and now - first_s > ALL_HOSTS_S:
                return
            if first_s is None and now - started > HOSTS_S:
                raise RunFailed(self._no_host())
            self._life.stage = f"waiting for hosts: {len(self._hosts)} of {self._fleet.hosts}"
            make_tick(TURN_S)

    def _no_host(self) -> str:
        words = self._link.last_words()
        said = f"; the end of what they wrote:\n{words}" if words else ""
        return f"hosts: none came within {HOSTS_S:.0f} s; look at the cluster's page for free slots{said}"


class OperatorTiming:
    """Before the stream flows, sends a few of its tuples through the operators. In the driver's thread only."""

    def __init__(
        self, hosts: HostTable, works: WorkTable, replays: Replays, link: HostLink, life: RunLife, clock: Clock
    ) -> None:
        self._hosts = hosts
        self._works = works
        self._replays = replays
        self._link = link
        self._life = life
        self._clock = clock

    def run(self, seconds: float, make_tick: MakeTick) -> None:
        """Time the operators in one host. One that hangs does not hold up the run."""
        totals, record = self._replays.totals(), next(iter(self._hosts), None)
        if not seconds or not totals or record is None or self._life.phase is not Phase.STARTING:
            return
        work = TimeWork(self._works.next_id(), totals, seconds)
        now = self._clock.now()
        self._works.add(UnderWay(work.id, record.host, "", {}, now, computes=True, alone=False), record)
        self._life.stage = f"timing the operators for {seconds:g} s"
        self._link.send(record.host, Works([work]))
        until = now + seconds + ALL_HOSTS_S
        while work.id in self._works and self._life.phase is Phase.STARTING:
            if self._clock.now() > until:
                log.warning("timing the operators takes longer than %g s; the stream begins without", seconds)
                self._link.replace(record.host)
                return
            make_tick(TURN_S)
