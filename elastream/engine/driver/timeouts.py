"""Works that take too long: with `work_timeout_s`, their host is replaced."""

import logging

from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.hosts.link import HostLink

log = logging.getLogger("elastream.tick")


class WorkTimeouts:
    """In the driver's thread only."""

    def __init__(self, works: WorkTable, hosts: HostTable, link: HostLink, limit_s: float | None) -> None:
        self._works = works
        self._hosts = hosts
        self._link = link
        self._limit_s = limit_s
        self._replaced: dict[int, str] = {}
        """The incarnation of each host that was replaced last: once is enough."""

    def check(self, now: float) -> None:
        limit_s = self._limit_s
        if limit_s is None:
            return
        for host in {work.host for work in self._works.all() if now - work.sent_s > limit_s}:
            record = self._hosts.get(host)
            if record is not None and record.incarnation != self._replaced.get(host):
                self._replaced[host] = record.incarnation
                log.warning("host %d: a work takes longer than %g s; the host is replaced", host, limit_s)
                self._link.replace(host)
