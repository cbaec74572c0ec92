"""Stateful lanes follow the hosts: one at a time, until every host has its share."""

from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.driver.placement.moves import GroupMoves
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState


class LaneSpreader:
    """Moves stateful lanes when a host has joined or is leaving, or a policy has placed a lane. In the driver's thread only."""

    def __init__(
        self, state: LedgerState, hosts: HostTable, homes: LaneHomes, groups: GroupTable, moves: GroupMoves
    ) -> None:
        self._state = state
        self._hosts = hosts
        self._homes = homes
        self._groups = groups
        self._moves = moves

    def step(self) -> None:
        """Begin at most one move per operator: off a leaving host, then to the host of a pin, then to an emptier host."""
        for operator in sorted(self._groups.stateful):
            lanes = [LaneId(operator, number) for number in set(self._state.owners[operator])]
            if not any(map(self._groups.gives, lanes)) and not self._groups.is_targeted(operator):
                self._begin_one(operator, lanes)

    def _begin_one(self, operator: str, lanes: list[LaneId]) -> None:
        homes = {lane: home for lane in lanes if (home := self._homes.home(lane)) is not None}
        leaving = next((lane for lane, home in homes.items() if self._hosts[home].leaving), None)
        if leaving is not None:
            staying = self._homes.emptiest(operator)
            if staying is not None:
                self._move(leaving, homes[leaving], staying.host)
            return
        if len(homes) < len(lanes):
            return
        pins = self._homes.pins
        pinned = next((lane for lane in lanes if pins.get(lane, homes[lane]) != homes[lane]), None)
        if pinned is not None:
            self._move(pinned, homes[pinned], pins[pinned])
            return
        counts = {record.host: 0 for record in self._hosts.staying() if not record.isolated}
        for home in homes.values():
            counts[home] = counts.get(home, 0) + 1
        fullest, emptiest = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        if counts[fullest] - counts[emptiest] > 1:
            free = [lane for lane, home in homes.items() if home == fullest and lane not in pins]
            if free:
                self._move(min(free), fullest, emptiest)

    def _move(self, lane: LaneId, from_host: int, to_host: int) -> None:
        self._moves.begin_lane(lane, self._hosts[from_host].identity, self._hosts[to_host].identity)
