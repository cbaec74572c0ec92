"""Hosts as the fleet sees them: those that are there, shall come, or shall hand over and go. In the driver's thread only."""

from elastream import rules
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.driver.placement.retirement import Retirement
from elastream.engine.hosts.link import HostLink
from elastream.engine.messages import Chairs
from elastream.fleet.engine_fleet import HostFact


class HostControl:
    """Between the fleet, which counts, and the driver, which knows what a host is doing."""

    def __init__(self, hosts: HostTable, link: HostLink, retirement: Retirement) -> None:
        self._hosts = hosts
        self._link = link
        self._retirement = retirement

    def there(self) -> list[HostFact]:
        return [HostFact(record.host, record.executor, record.leaving) for record in self._hosts]

    def keep(self, host: int) -> None:
        self._link.keep(host)

    def retire(self, host: int) -> None:
        if host in self._hosts:
            self._retirement.begin(host)
        else:
            self._link.end(host)

    def seat(self, seats: int) -> None:
        self._hosts.set_threads(seats)
        for record in self._hosts:
            self._link.send(record.host, Chairs(seats))

    def seats(self) -> int:
        if self._hosts.threads == rules.MOST_WAITING:
            return rules.MOST_WAITING
        reported = [record.usage.seats if record.usage else 0 for record in self._hosts if not record.leaving]
        return min(reported, default=0)
