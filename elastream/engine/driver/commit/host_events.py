"""Events of hosts: which receipts count, and who joined and was lost."""

import logging
from typing import NamedTuple

from elastream import rules
from elastream.engine.driver.commit.check_receipts import ReceiptCheck
from elastream.engine.driver.dispatch.routing_facts import RoutingFacts
from elastream.engine.driver.dispatch.works import Moment, UnderWay, WorkTable
from elastream.engine.driver.placement.host_changes import HostChanges
from elastream.engine.driver.placement.hosts import HostId, HostRecord, HostTable
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.engine.driver.run_base import RunBase
from elastream.engine.hosts.link import Event, HostCame, HostLink, HostSaid, HostUses, HostWent
from elastream.engine.messages import Chairs, Receipt, Welcome
from elastream.errors import RunFailed

log = logging.getLogger("elastream.tick")

WorkDone = tuple[UnderWay, Receipt]
"""A work and its receipt."""


class HostReports(NamedTuple):
    """Reports of hosts since the last tick."""

    done: list[WorkDone]
    ended: list[str]
    """Segment files that they have ended."""
    unused: list[str]
    """Segments of receipts that were refused."""


class HostWelcome:
    """Greets hosts that join, and tells the clean-up who writes segments. In the driver's thread only."""

    def __init__(self, base: RunBase, hosts: HostTable, facts: RoutingFacts, link: HostLink) -> None:
        self._base = base
        self._hosts = hosts
        self._facts = facts
        self._link = link

    def greet(self, event: HostCame) -> None:
        self._base.cleanup.host_came(event.incarnation)
        self._link.send(event.host, Welcome(self._base.state.schemas))
        self._link.send(event.host, self._facts.routing())
        if self._hosts.threads != rules.MOST_WAITING:
            self._link.send(event.host, Chairs(self._hosts.threads))

    def part(self, event: HostWent) -> None:
        self._base.cleanup.host_went(event.incarnation)

    def replace(self, host: int) -> None:
        self._link.replace(host)


class HostEvents:
    """Reads events in their order. In the driver's thread only."""

    def __init__(
        self,
        works: WorkTable,
        hosts: HostTable,
        keeper: StateKeeper,
        changes: HostChanges,
        check: ReceiptCheck,
        welcome: HostWelcome,
    ) -> None:
        self._works = works
        self._hosts = hosts
        self._keeper = keeper
        self._changes = changes
        self._check = check
        self._welcome = welcome

    def read(self, events: list[Event], moment: Moment) -> HostReports:
        """The receipts that count: each work has one, and those of unknown works or processes do not count."""
        done: list[WorkDone] = []
        ended: list[str] = []
        for event in events:
            if isinstance(event, HostSaid):
                if self._hosts.of(HostId(event.host, event.incarnation)) is not None:
                    ended += event.ended
                    self._take_receipts(event, done)
            elif isinstance(event, HostCame):
                before = self._hosts.identity(event.host)
                if before is not None:
                    # A number has one process at a time: the works of the one before are gone with it.
                    self._lost(HostWent(*before), done, moment)
                self._changes.joined(
                    HostRecord(event.host, event.incarnation, event.pid, event.machine, event.executor)
                )
                self._welcome.greet(event)
            elif isinstance(event, HostUses):
                record = self._hosts.of(HostId(event.host, event.incarnation))
                if record is not None:
                    record.usage = event.usage
            elif isinstance(event, HostWent):
                self._lost(event, done, moment)
            else:
                raise RunFailed(event.reason)
        return self._as_they_count(done, ended)

    def _take_receipts(self, event: HostSaid, done: list[WorkDone]) -> None:
        heard = {work.id for work, _ in done}
        for receipt in event.receipts:
            work = self._works.get(receipt.work)
            if work is None or work.host != event.host or work.id in heard:
                # It is not known any more, or was heard a moment ago: a receipt counts once.
                continue
            heard.add(work.id)
            problem = self._check.problem(work, receipt)
            if problem is None:
                done.append((work, receipt))
            else:
                log.warning("host %d tells of %s; it is replaced", event.host, problem)
                self._welcome.replace(event.host)

    def _lost(self, event: HostWent, done: list[WorkDone], moment: Moment) -> None:
        self._welcome.part(event)
        record = self._hosts.of(HostId(event.host, event.incarnation))
        if record is None:
            # Another process has its number by now.
            return
        # Receipts that came before it went count: those works are done.
        for work, receipt in done:
            if work.host == event.host and receipt.problem is None:
                record.works.discard(work.id)
        self._changes.lost(event.host, moment.now, quietly=record.leaving or not moment.running)

    def _as_they_count(self, done: list[WorkDone], ended: list[str]) -> HostReports:
        """Receipts about states, now that it is known who joined and who was lost."""
        reports = HostReports([], ended, [])
        for work, receipt in done:
            if work.task is not None:
                receipt, unused = self._keeper.check(work.task, receipt)
                reports.unused.extend(unused)
            reports.done.append((work, receipt))
        return reports
