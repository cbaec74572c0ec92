"""The fleet of an engine: seats and hosts that it keeps itself, executors that it asks somebody for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from elastream.fleet.levels import Level, LevelState
from elastream.fleet.machines import Machines
from elastream.fleet.orders import Orders

SEAT_S, HOST_S, EXECUTOR_S = 0.005, 2.0, 10.0
"""Guesses of how long one takes to come, until one has."""

TELL_AGAIN_S = 5.0
"""An executor that is still there so long after Spark was told that it may go is given back again."""

STEP_S = 0.01
"""Between two looks at what has come."""


@dataclass(frozen=True)
class HostFact:
    """A host that is there."""

    number: int
    executor: str
    leaving: bool
    """True while it hands over what it has."""


class Hosts(Protocol):
    """Hosts as a fleet sees them."""

    def there(self) -> Sequence[HostFact]:
        """In the order in which they came."""
        ...

    def keep(self, host: int) -> None: ...

    def retire(self, host: int) -> None:
        """Have a host hand over what it has, and end it then; at once when it has not come yet."""
        ...

    def seat(self, seats: int) -> None:
        """Have so many seats in every host."""
        ...

    def seats(self) -> int:
        """As many as the host with the fewest has."""
        ...


class EngineFleet:
    """Called in the tick's thread only; `step` takes microseconds when nothing has changed.

    Until somebody decides otherwise there are as many hosts as the executors have room for, and as many executors as Spark was
    given. An executor that is given back loses its hosts first, each of which hands over; the last that came goes first.
    """

    def __init__(self, hosts: Hosts, machines: Machines, now: Callable[[], float], seats: int) -> None:
        self._hosts = hosts
        self._machines = machines
        self._now = now
        facts = machines.look()
        self._seats = Orders(Level.SEAT, seats, seats, SEAT_S, there=seats)
        self._host_orders = Orders(Level.HOST, facts.room, facts.room, HOST_S)
        self._executors = Orders(Level.EXECUTOR, len(facts.names), machines.most, EXECUTOR_S, there=len(facts.names))
        self._wanted_hosts: int | None = None
        """Decided; None: as many as there is room for."""
        self._wanted_executors: int | None = None
        self._kept: list[int] = []
        """Numbers of the hosts that shall be there, whether they have come or not."""
        self._going: set[int] = set()
        self._giving: dict[str, float | None] = {}
        """Executors that are being given back, and when Spark was told so last; None: not yet."""
        self._stepped_s = float("-inf")

    @property
    def hosts(self) -> int:
        """As many as shall be there now."""
        return len(self._kept)

    # -- the port

    def look(self) -> tuple[LevelState, ...]:
        return self._seats.state, self._host_orders.state, self._executors.state

    def grow(self, level: Level, by: int) -> None:
        self.set(level, self._planned(level) + by)

    def shrink(self, level: Level, by: int) -> None:
        self.set(level, max(1, self._planned(level) - by))

    # -- between two turns

    def step(self) -> None:
        """Take notice of what has come and gone, and ask for what is missing."""
        now_s = self._now()
        if now_s - self._stepped_s < STEP_S:
            return
        self._stepped_s = now_s
        self._follow_executors(now_s)
        self._follow_hosts(now_s)
        self._seats.saw(self._hosts.seats(), now_s)
        seats = self._seats.due(now_s)
        if seats is not None:
            self._hosts.seat(seats)

    # -- inside

    def _planned(self, level: Level) -> int:
        return next(state.planned for state in self.look() if state.level is level)

    def set(self, level: Level, count: int) -> None:
        """Have so many of a level."""
        if level is Level.SEAT:
            self._seats.plan(count)
        elif level is Level.HOST:
            self._wanted_hosts = count
            self._host_orders.plan(count)
        else:
            self._wanted_executors = count
            self._executors.plan(count)
        self._stepped_s = float("-inf")
        self.step()

    def _follow_executors(self, now_s: float) -> None:
        facts, there = self._machines.look(), {host.executor for host in self._hosts.there()}
        self._executors.most = max(self._machines.most, len(facts.names))
        if self._wanted_executors is None:
            self._executors.plan(len(facts.names))
            self._executors.saw(len(facts.names), now_s)
            self._executors.due(now_s)
            return
        self._giving = {name: told_s for name, told_s in self._giving.items() if name in facts.names}
        staying = [name for name in facts.names if name not in self._giving]
        # The last that came go first, but not the one in which the only hosts are that stay.
        hosted = {host.executor for host in self._hosts.there() if host.number in self._kept}
        for name in sorted(staying, key=lambda name: name not in hosted)[self._wanted_executors :]:
            self._giving[name] = None
        self._executors.saw(min(len(staying), self._wanted_executors), now_s)
        ready = tuple(
            name
            for name, told_s in self._giving.items()
            if name not in there and (told_s is None or now_s - told_s > TELL_AGAIN_S)
        )
        if ready:
            self._giving |= dict.fromkeys(ready, now_s)
            self._machines.give_back(ready, self._wanted_executors)
        total = self._executors.due(now_s)
        if total is not None and total > len(staying):
            self._machines.ask(total)

    def _follow_hosts(self, now_s: float) -> None:
        facts, there = self._machines.look(), self._hosts.there()
        room = facts.room - facts.per_machine * sum(name in facts.names for name in self._giving)
        self._host_orders.most = max(facts.room, facts.per_machine * self._executors.most)
        planned = self._wanted_hosts if self._wanted_hosts is not None else max(1, room)
        self._host_orders.plan(planned)
        self._host_orders.due(now_s)
        wanted = max(1, min(planned, room))
        alive = {host.number for host in there}
        self._going &= alive
        self._kept = [number for number in self._kept if number not in self._going]
        for host in there:
            if host.executor in self._giving and host.number in self._kept:
                self._retire(host.number)
        while len(self._kept) > wanted:
            # Those that have not come first, then the last that came.
            came = [host.number for host in there if host.number in self._kept]
            self._retire(
                next((n for n in reversed(self._kept) if n not in alive), came[-1] if came else self._kept[-1])
            )
        # A new one might be put on an executor that is about to go.
        while len(self._kept) < wanted and None not in self._giving.values():
            number = next(n for n in range(len(self._kept) + len(self._going) + 1) if self._is_free(n))
            self._kept.append(number)
            self._hosts.keep(number)
        self._host_orders.saw(sum(host.number in self._kept for host in there), now_s)

    def _retire(self, number: int) -> None:
        self._kept.remove(number)
        self._going.add(number)
        self._hosts.retire(number)

    def _is_free(self, number: int) -> bool:
        return number not in self._kept and number not in self._going
