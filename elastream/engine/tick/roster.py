"""The hosts that are there: which works each has, and where lanes live."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from elastream import rules
from elastream.engine.messages import Usage
from elastream.lanes.segments import LaneId


class HostId(NamedTuple):
    """One process that is or was a host: another one under the same number has another incarnation."""

    number: int
    incarnation: str


@dataclass
class Seats:
    """One host, and the works it has."""

    host: int
    incarnation: str
    pid: int = 0
    machine: str = ""
    executor: str = ""
    computing: int = 0
    reading: int = 0
    """Works of sources among those that compute."""
    works: set[int] = field(default_factory=set)
    alone: bool = False
    """True while it has a work that must have the host for itself."""
    leaving: bool = False
    """True when it is to be given back: it hands over what it has, and gets nothing new."""
    waiting: int = rules.MOST_WAITING
    """Works that may wait in it side by side: its seats."""
    usage: Usage | None = None
    """As it said last."""

    @property
    def identity(self) -> HostId:
        return HostId(self.host, self.incarnation)

    @property
    def has_seat(self) -> bool:
        """True when one more work may wait in it."""
        return len(self.works) - self.computing < self.waiting


class Roster:
    """Hosts by number, and the home of every lane. A lane keeps its home while both live and the home is not crowded."""

    def __init__(self) -> None:
        self.hosts: dict[int, Seats] = {}
        self._homes: dict[LaneId, int] = {}
        self._lanes: Counter[int] = Counter()
        """Per host, how many lanes live there."""
        self._shares: Counter[tuple[str, int]] = Counter()
        """The same per operator and host."""
        self.settlers: frozenset[str] = frozenset()
        """Operators whose lanes remember something: they do not move to where there is room."""
        self.prefer: Callable[[LaneId], int | None] = lambda lane: None
        """The host in which such a lane finds most of what it needs."""
        self.pins: dict[LaneId, int] = {}
        """Lanes that a policy has given a host: they stay there as long as it lives."""
        self.seats = rules.MOST_WAITING
        """Of every host."""

    def came(self, seats: Seats) -> None:
        seats.waiting = self.seats
        self.hosts[seats.host] = seats

    def uses(self, host: int, incarnation: str, usage: Usage) -> None:
        seats = self.hosts.get(host)
        if seats is not None and seats.incarnation == incarnation:
            seats.usage = usage

    def seat_all(self, seats: int) -> None:
        """Have as many seats in every host."""
        self.seats = seats
        for host in self.hosts.values():
            host.waiting = seats

    def went(self, host: int) -> Seats | None:
        for lane in [lane for lane, home in self._homes.items() if home == host]:
            self._leave(lane)
        self.pins = {lane: pin for lane, pin in self.pins.items() if pin != host}
        return self.hosts.pop(host, None)

    def staying(self) -> dict[int, Seats]:
        """The hosts that may be given something new; all of them, should every one be leaving."""
        return {host: seats for host, seats in self.hosts.items() if not seats.leaving} or self.hosts

    def leave(self, host: int) -> None:
        """A host is to be given back. Lanes that remember nothing find another home; the others are moved with their state."""
        if host in self.hosts:
            self.hosts[host].leaving = True
            self.pins = {lane: pin for lane, pin in self.pins.items() if pin != host}
            for lane in [lane for lane, home in self._homes.items() if home == host]:
                if lane.operator not in self.settlers:
                    self._leave(lane)

    def lanes_in(self, host: int) -> list[LaneId]:
        return [lane for lane, home in self._homes.items() if home == host]

    def emptiest(self, operator: str) -> int | None:
        """The host that shall have one more lane of an operator; None while there is none that stays."""
        staying = [host for host, seats in self.hosts.items() if not seats.leaving]
        return min(staying, key=lambda host: self._crowd(operator, host), default=None)

    def identity(self, host: int | None) -> HostId | None:
        """Of the process that has this number now; None while there is none."""
        seats = self.hosts.get(host) if host is not None else None
        return None if seats is None else seats.identity

    def home(self, lane: LaneId) -> int | None:
        return self._homes.get(lane)

    def settled(self, lane: LaneId) -> Seats | None:
        """The home of a lane that remembers something and moves only when it must; None while there is no host."""
        home = self.hosts.get(self._homes.get(lane, -1))
        if home is None and self.hosts:
            known = self.pins.get(lane, self.prefer(lane))
            home = self.hosts[known] if known in self.staying() else self._best(lane.operator, also_reserved=True)
            if home is not None:
                self._moved(lane, home)
        return home

    def pin(self, lane: LaneId, host: int) -> None:
        """Have a lane live in a host. One that remembers something follows when its state is there."""
        if host in self.hosts and not self.hosts[host].leaving:
            self.pins[lane] = host
            if lane.operator not in self.settlers or lane not in self._homes:
                self._moved(lane, self.hosts[host])

    def move(self, lane: LaneId, host: int) -> None:
        if host in self.hosts:
            self._moved(lane, self.hosts[host])

    def seat(self, lane: LaneId, computes: bool) -> Seats | None:
        """The host that shall serve a lane now; None while all that could are busy."""
        home = self.hosts.get(self._homes.get(lane, -1))
        if home is None or home.alone or home.leaving:
            home = self._best(lane.operator)
            if home is None:
                return None
        if not computes:
            if not home.has_seat and lane not in self.pins:
                home = min(self.staying().values(), key=lambda seats: len(seats.works))
            return self._moved(lane, home) if home.has_seat and not home.alone else None
        if home.computing and lane not in self.pins:
            staying = self.staying().values()
            idle = next((seats for seats in staying if not seats.computing and not seats.alone), None)
            if idle is not None:
                home = idle
        return self._moved(lane, home) if home.computing < rules.DEPTH else None

    def seat_source(self, part: LaneId, most: int) -> Seats | None:
        """The same for a part of a source; no host has more than `most` works of sources."""
        home = self.hosts.get(self._homes.get(part, -1))
        if home is not None and home.reading >= most:
            free = next((seats for seats in self.staying().values() if not seats.computing and not seats.alone), None)
            return None if free is None else self._moved(part, free)
        seats = self.seat(part, computes=True)
        return seats if seats is None or seats.reading < most else None

    def lonely(self) -> Seats | None:
        """A host that has nothing to do and gets nothing else, for a work that must be alone; None until one is empty."""
        chosen = next((seats for seats in self.hosts.values() if seats.alone), None)
        if chosen is None:
            chosen = min(self.staying().values(), key=lambda seats: (len(seats.works), seats.host), default=None)
            if chosen is None:
                return None
            chosen.alone = True
        return None if chosen.works else chosen

    def alone_at(self, lane: LaneId) -> Seats | None:
        """The same for a lane that remembers something, in its home."""
        home = self.settled(lane)
        if home is None:
            return None
        home.alone = True
        return None if home.works else home

    def seat_at_home(self, lane: LaneId, computes: bool) -> Seats | None:
        """The home of a lane that remembers something, when it can serve it now."""
        home = self.settled(lane)
        if home is None or home.alone:
            return None
        room = home.computing < rules.DEPTH if computes else home.has_seat
        return home if room else None

    def unreserve(self) -> None:
        """A work that must be alone cannot be sent now: hosts that are kept free for it take others."""
        for seats in self.hosts.values():
            if seats.alone and not seats.works:
                seats.alone = False

    def rejoin(self) -> None:
        """No work must be alone any more."""
        for seats in self.hosts.values():
            seats.alone = False

    def spread(self, lanes: Iterable[LaneId]) -> None:
        """Hosts have come or gone: give a home to every lane, and move as few of the others as an even share needs."""
        by_operator: dict[str, list[LaneId]] = {}
        for lane in sorted(lanes) if self.hosts else ():
            if lane.operator in self.settlers:
                self.settled(lane)
                continue
            by_operator.setdefault(lane.operator, []).append(lane)
        for operator, found in by_operator.items():
            for lane in found:
                if lane not in self._homes:
                    self._moved(lane, self.hosts[min(self.staying(), key=lambda host: self._crowd(operator, host))])
            self._even_out(operator, [lane for lane in found if lane not in self.pins])

    def _even_out(self, operator: str, lanes: list[LaneId]) -> None:
        while True:
            staying = self.staying()
            emptiest = min(staying, key=lambda host: self._crowd(operator, host))
            fullest = max(staying, key=lambda host: self._crowd(operator, host))
            if self._shares[operator, fullest] - self._shares[operator, emptiest] <= 1:
                return
            # The first lanes are the active ones.
            lane = next((lane for lane in lanes if self._homes[lane] == fullest), None)
            if lane is None:
                return
            self._moved(lane, self.hosts[emptiest])

    def _best(self, operator: str, *, also_reserved: bool = False) -> Seats | None:
        """The home for one more lane of an operator; None while all hosts are reserved, unless one of those will do.

        It must do for a lane that remembers something: the host may be reserved for this very lane, which needs a home first.
        """
        free = [host for host, seats in self.staying().items() if not seats.alone]
        free = free or (list(self.staying()) if also_reserved else [])
        chosen = min(free, key=lambda host: self._crowd(operator, host), default=None)
        return None if chosen is None else self.hosts[chosen]

    def _crowd(self, operator: str, host: int) -> tuple[int, int, int, int]:
        """Lanes of an operator in a host, then those in its executor, then all lanes of the host."""
        executor = self.hosts[host].executor
        beside = sum(self._shares[operator, other] for other, seats in self.hosts.items() if seats.executor == executor)
        return self._shares[operator, host], beside, self._lanes[host], host

    def _moved(self, lane: LaneId, seats: Seats) -> Seats:
        if self._homes.get(lane) != seats.host:
            self._leave(lane)
            self._homes[lane] = seats.host
            self._lanes[seats.host] += 1
            self._shares[lane.operator, seats.host] += 1
        return seats

    def _leave(self, lane: LaneId) -> None:
        home = self._homes.pop(lane, None)
        if home is not None:
            self._lanes[home] -= 1
            self._shares[lane.operator, home] -= 1
