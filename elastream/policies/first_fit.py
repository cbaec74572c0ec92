"""Modified first fit (Dr-Stream, section 5.4): which host each instance of an operator gets. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from elastream.control import HostObservation


class Hosts:
    """Hosts in the order of their free cores, the freest first, and what was put on them since."""

    def __init__(self, hosts: Iterable[HostObservation], free: Mapping[int, float]) -> None:
        order = sorted(hosts, key=lambda host: (-free[host.host], host.host))
        self._machine = {host.host: host.machine for host in order}
        self._free = {host.host: free[host.host] for host in order}
        self._here: Counter[tuple[str, int]] = Counter()
        self._beside: Counter[tuple[str, str]] = Counter()

    def seen(self, operator: str, host: int) -> None:
        """An instance lives there already, and what it uses is not free."""
        if host in self._machine:
            self._here[operator, host] += 1
            self._beside[operator, self._machine[host]] += 1

    def put(self, operator: str, cores: float) -> int:
        """The first host with so much room, of those on machines with the fewest instances of the operator."""

        def instances(host: int) -> tuple[int, int]:
            return self._beside[operator, self._machine[host]], self._here[operator, host]

        fewest = min(map(instances, self._machine))
        found = [host for host in self._machine if instances(host) == fewest]
        fitting = [host for host in found if self._free[host] >= cores - 1e-9]
        # Where nothing fits, the most room there is.
        host = fitting[0] if fitting else max(found, key=lambda host: self._free[host])
        self._free[host] -= cores
        self.seen(operator, host)
        return host


def difference(wanted: list[int], lives: Mapping[int, int]) -> dict[int, int]:
    """The lanes that must move, and where to, so that the instances of an operator are on these hosts: as few as can be."""
    left = Counter(wanted)
    moving = []
    for lane, host in lives.items():
        if left[host]:
            left[host] -= 1
        else:
            moving.append(lane)
    return dict(zip(moving, left.elements(), strict=False))
