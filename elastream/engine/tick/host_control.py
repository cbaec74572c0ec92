"""Hosts as the fleet sees them: who is there, who shall come, who shall hand over and go. In the tick's thread."""

from elastream import rules
from elastream.engine.hosts.link import HostLink
from elastream.engine.messages import Chairs
from elastream.engine.tick.retirement import Retirement
from elastream.engine.tick.roster import Roster
from elastream.fleet.engine_fleet import HostFact


class HostControl:
    """Between the fleet, which counts, and the tick, which knows what a host is doing."""

    def __init__(self, roster: Roster, hosts: HostLink, retirement: Retirement) -> None:
        self._roster = roster
        self._hosts = hosts
        self._retirement = retirement

    def there(self) -> list[HostFact]:
        return [HostFact(seats.host, seats.executor, seats.leaving) for seats in self._roster.hosts.values()]

    def keep(self, host: int) -> None:
        self._hosts.keep(host)

    def retire(self, host: int) -> None:
        if host in self._roster.hosts:
            self._retirement.begin(host)
        else:
            self._hosts.end(host)

    def seat(self, seats: int) -> None:
        self._roster.seat_all(seats)
        for host in self._roster.hosts:
            self._hosts.send(host, Chairs(seats))

    def seats(self) -> int:
        if self._roster.seats == rules.MOST_WAITING:
            return rules.MOST_WAITING
        said = [seats.usage.seats if seats.usage else 0 for seats in self._roster.hosts.values() if not seats.leaving]
        return min(said, default=0)
