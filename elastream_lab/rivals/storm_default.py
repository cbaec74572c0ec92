"""Storm's default: replicas as the topology says, dealt out to hosts in turn, as its even scheduler does."""

from elastream.control import Home, HostObservation, Observation, Policy, Proposal


class StormDefault(Policy):
    """A replica keeps its home until that is gone. Load changes nothing."""

    name = "storm-default"

    def __init__(self) -> None:
        self._homes: dict[tuple[str, int], int] = {}
        self._dealt = 0

    def propose(self, observation: Observation) -> Proposal:
        slots = _interleaved(observation.hosts)
        if not slots:
            return Proposal()
        homes = []
        for operator in observation.scalable():
            for lane in (lane for lane in operator.lanes if lane.active):
                place = operator.operator, lane.lane
                reason = "dealt out in turn"
                if place in self._homes and self._homes[place] not in slots:
                    del self._homes[place]
                    reason = "its host is gone: dealt out in turn"
                if place not in self._homes:
                    self._homes[place] = slots[self._dealt % len(slots)]
                    self._dealt += 1
                if lane.host != self._homes[place]:
                    homes.append(Home(*place, self._homes[place], reason))
        return Proposal(homes=tuple(homes))


def _interleaved(hosts: tuple[HostObservation, ...]) -> list[int]:
    """The first host of every machine, then the second of every machine, and so on."""
    ranks: dict[str, int] = {}
    ranked = []
    for host in sorted(hosts, key=lambda host: host.host):
        rank = ranks.get(host.machine, 0)
        ranks[host.machine] = rank + 1
        ranked.append((rank, host.host))
    return [host for _, host in sorted(ranked)]
