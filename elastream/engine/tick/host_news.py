"""What hosts say: who came, who went, and which receipts count."""

import logging
from typing import NamedTuple

from elastream import rules
from elastream.engine.hosts.link import Event, HostCame, HostLink, HostSaid, HostUses, HostWent
from elastream.engine.messages import Chairs, Receipt, Welcome
from elastream.engine.tick.check_receipts import ReceiptCheck
from elastream.engine.tick.life import Phase, RunLife
from elastream.engine.tick.planner import Planner
from elastream.engine.tick.roster import HostId, Seats
from elastream.engine.tick.run_base import RunBase
from elastream.engine.tick.transfers import Transfers
from elastream.engine.tick.works import UnderWay
from elastream.errors import RunFailed
from elastream.topology import Graph

log = logging.getLogger("elastream.tick")

Said = tuple[UnderWay, Receipt]
"""A work, and what came of it."""


class News(NamedTuple):
    """What hosts have said since the turn before."""

    said: list[Said]
    ended: list[str]
    """Segment files that they have ended."""
    unused: list[str]
    """Segments of receipts that were refused."""


class HostNews:
    """Tells the planner, the transfers and the clean-up of hosts that came and went, and welcomes them. In the tick's thread."""

    def __init__(
        self, graph: Graph, base: RunBase, planner: Planner, transfers: Transfers, hosts: HostLink, life: RunLife
    ) -> None:
        self._base = base
        self._planner = planner
        self._transfers = transfers
        self._hosts = hosts
        self._life = life
        self._check = ReceiptCheck(graph, base.state)

    def hear(self, events: list[Event], now: float) -> News:
        """The receipts of works that are known: others are of zombies. Each work has one."""
        said: list[Said] = []
        ended: list[str] = []
        heard: set[int] = set()
        for event in events:
            if isinstance(event, HostSaid):
                seats = self._planner.roster.hosts.get(event.host)
                if seats is None or seats.incarnation != event.incarnation:
                    continue
                ended += event.ended
                for receipt in event.receipts:
                    known = self._planner.under_way.get(receipt.work)
                    if known is None or known.host != event.host or known.id in heard:
                        # It is not known any more, or was heard a moment ago: a receipt counts once.
                        continue
                    heard.add(known.id)
                    problem = self._check.problem(known, receipt)
                    if problem is None:
                        said.append((known, receipt))
                    else:
                        log.warning("host %d tells of %s; it is replaced", event.host, problem)
                        self._hosts.replace(event.host)
            elif isinstance(event, HostCame):
                before = self._planner.roster.identity(event.host)
                if before is not None:
                    # A number has one process at a time: what the other had is gone with it.
                    self._host_went(HostWent(*before), said, now)
                self._planner.came(Seats(event.host, event.incarnation, event.pid, event.machine, event.executor))
                self._base.cleanup.host_came(event.incarnation)
                self._hosts.send(event.host, Welcome(self._base.state.schemas))
                self._hosts.send(event.host, self._planner.facts.routing())
                if self._planner.roster.seats != rules.MOST_WAITING:
                    self._hosts.send(event.host, Chairs(self._planner.roster.seats))
            elif isinstance(event, HostUses):
                self._planner.roster.uses(event.host, event.incarnation, event.usage)
            elif isinstance(event, HostWent):
                self._host_went(event, said, now)
            else:
                raise RunFailed(event.reason)
        return self._checked(said, ended)

    def _checked(self, said: list[Said], ended: list[str]) -> News:
        """Receipts about states as they count, now that it is known who came and who went."""
        news = News([], ended, [])
        for known, receipt in said:
            if known.task is not None:
                receipt, unused = self._planner.keeper.check(known.task, receipt)
                news.unused.extend(unused)
            news.said.append((known, receipt))
        return news

    def _host_went(self, event: HostWent, said: list[Said], now: float) -> None:
        """Its works go back to their lanes."""
        self._base.cleanup.host_went(event.incarnation)
        if self._planner.roster.identity(event.host) != HostId(event.host, event.incarnation):
            # Another process has its number by now.
            return
        # What it said before it went counts: those works are done.
        for known, receipt in said:
            if known.host == event.host and receipt.problem is None:
                seats = self._planner.roster.hosts.get(event.host)
                if seats is not None:
                    seats.works.discard(known.id)
        gone = self._planner.roster.hosts.get(event.host)
        leaving = gone is not None and gone.leaving
        lost = self._planner.lost(event.host, now)
        self._transfers.host_went(event.host)
        if self._life.phase is Phase.RUNNING and not leaving:
            names = sorted({work.operator for work in lost if work.operator})
            log.warning("host %d is gone; %d works go back to %s", event.host, len(lost), ", ".join(names) or "nobody")
