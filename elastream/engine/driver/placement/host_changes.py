"""Hosts that join and hosts that are lost: every table that names hosts is told here."""

import logging

from elastream.engine.driver.dispatch.returned import ReturnedWorks
from elastream.engine.driver.dispatch.works import UnderWay
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostRecord, HostTable
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.lanes.state import LedgerState

log = logging.getLogger("elastream.tick")


class HostChanges:
    """In the driver's thread only."""

    def __init__(
        self,
        state: LedgerState,
        hosts: HostTable,
        homes: LaneHomes,
        groups: GroupTable,
        keeper: StateKeeper,
        returned: ReturnedWorks,
    ) -> None:
        self._state = state
        self._hosts = hosts
        self._homes = homes
        self._groups = groups
        self._keeper = keeper
        self._returned = returned

    def joined(self, record: HostRecord) -> None:
        self._hosts.join(record)
        self._homes.spread(self._state.lanes)

    def lost(self, host: int, now: float, *, quietly: bool) -> None:
        """A host is gone: its works go back to their lanes, and its lanes get other homes."""
        self._homes.host_lost(host)
        record = self._hosts.lose(host)
        works: list[UnderWay] = []
        for number in sorted(record.works) if record is not None else ():
            work = self._returned.lost(number, now)
            if work is not None:
                works.append(work)
                if work.task is not None:
                    self._keeper.lost(work.task)
        self._keeper.host_lost(host)
        self._groups.host_lost(host)
        self._homes.spread(self._state.lanes)
        if not quietly:
            names = ", ".join(sorted({work.operator for work in works if work.operator})) or "no lane"
            log.warning("host %d is gone; %d works go back to %s", host, len(works), names)
