"""The hosts of a simulated run and their connections: messages take time, hosts die and return, links break on one side."""

import random
from collections import deque
from collections.abc import Callable

from elastream.engine import messages
from elastream.engine.hosts.link import Event, HostCame, HostSaid, HostUses, HostWent
from elastream.engine.messages import Receipts, ToHost, Usage, Works
from elastream.engine.worker.program import Program
from elastream.testing.simulation.host import HostProcess, HostTiming
from elastream.testing.simulation.scheduler import Process, Scheduler, Strand
from elastream.testing.simulation.storage import Disk

UNNOTICED_S = 11.0
"""A peer that vanishes without a word is noticed after this long: `TCP_USER_TIMEOUT`."""


LONGEST_TURN_S = 0.01
"""Turns in which nothing is heard take longer and longer, up to this."""


class Connection:
    """Between a driver and one incarnation of a host. Messages of one direction keep their order."""

    def __init__(self, hosts: "SimulatedHosts", host: HostProcess) -> None:
        self.hosts = hosts
        self.host = host
        self.open = True
        """False when the driver's end is closed: what comes afterwards is not read."""
        self.held_until_s = {"to host": 0.0, "to driver": 0.0}
        """A link that is broken in one direction delivers nothing before."""
        self._last_s = {"to host": 0.0, "to driver": 0.0}

    def deliver(self, direction: str, call: Callable[[], None]) -> None:
        scheduler = self.hosts.scheduler
        at_s = scheduler.now + self.hosts.latency_s()
        at_s = max(at_s, self._last_s[direction], self.held_until_s[direction])
        self._last_s[direction] = at_s
        scheduler.at(at_s, call)


class SimulatedHosts:
    """The port `HostLink` of one driver. A host that ends is started again while it is kept, as Spark would."""

    def __init__(
        self,
        scheduler: Scheduler,
        driver: Process,
        disk: Disk,
        timing: HostTiming,
        chance: random.Random,
        latency_s: Callable[[], float],
        turn_s: float,
        record: Callable[[str, str], None],
        before_send: Callable[[Process], None],
    ) -> None:
        self.scheduler = scheduler
        self.driver = driver
        self.latency_s = latency_s
        self.live: dict[int, Connection] = {}
        self.parked: dict[int, deque[Connection]] = {}
        self.zombies: list[HostProcess] = []
        self.strand: Strand | None = None
        """The driver's, which polls."""
        self.duplicates = 0.0
        """The share of receipts that come twice."""
        self._turn_s = turn_s
        self._in_vain = 0
        self._disk = disk
        self._timing = timing
        self._chance = chance
        self._record = record
        self._before_send = before_send
        self._program: Program | None = None
        self._kept: set[int] = set()
        self._came: dict[int, int] = {}
        self._connections: dict[HostProcess, Connection] = {}
        self._arrived: list[Callable[[], None]] = []
        """What has come and was not polled yet. The driver learns of it, and of hosts that come and go, in `poll` only."""
        self._events: list[Event] = []
        self._closed = False

    # -- the port

    def start(self, program: Program) -> None:
        self._program = program

    def poll(self, timeout_s: float) -> list[Event]:
        # A driver that polls for nothing again and again would take a million turns for a minute.
        self._in_vain = 0 if self._arrived else self._in_vain + 1
        self.scheduler.pause(min(self._turn_s * (1 + self._in_vain), max(self._turn_s, LONGEST_TURN_S)))
        if not self._arrived and timeout_s > 0.0:
            self.scheduler.wait(timeout_s)
        arrived, self._arrived = self._arrived, []
        for arrive in arrived:
            arrive()
        events, self._events = self._events, []
        return events

    def wake(self) -> None:
        if self.strand is not None:
            self.scheduler.wake(self.strand)

    def send(self, host: int, message: ToHost) -> None:
        connection = self.live.get(host)
        if isinstance(message, Works):
            self._before_send(self.driver)
        self.driver.check()
        if connection is None or not connection.open:
            return
        data = messages.encode(message)
        if isinstance(message, Works):
            for work in message.works:
                self._record("driver", f"sends {type(work).__name__} {work.id} to {connection.host.name}")
        connection.deliver("to host", lambda: connection.host.post(data))

    def keep(self, host: int) -> None:
        if host not in self._kept:
            self._kept.add(host)
            self._start_later(host)

    def end(self, host: int) -> None:
        self._kept.discard(host)
        self.drop(host)

    def replace(self, host: int) -> None:
        self.drop(host)

    def last_words(self) -> str:
        """Simulated hosts write nothing to a standard error."""
        return ""

    def close(self) -> None:
        """The driver is gone, or done: hosts notice it one after another, and end."""
        if not self._closed:
            self._closed = True
            for connection in [*self.live.values(), *(one for queue in self.parked.values() for one in queue)]:
                connection.open = False
                self._end_later(connection.host)

    # -- what goes wrong

    def drop(self, host: int, zombie_s: float | None = None) -> None:
        """The connection ends. The host goes on for a while before it notices."""
        connection = self.live.get(host)
        if connection is not None and connection.open:
            connection.open = False
            self._went(connection)
            self._end_later(connection.host, zombie_s)

    def died(self, connection: Connection, silent_s: float = 0.0) -> None:
        """The process of a host is dead. The driver reads what it said before; of a machine that vanished, it hears late."""
        connection.host.kill()
        self._record(connection.host.name, "is dead")
        if silent_s:
            self.scheduler.after(silent_s, lambda: self._lost(connection))
        else:
            connection.deliver("to driver", lambda: self._lost(connection))
        self._start_later(connection.host.number)

    def reset(self, connection: Connection) -> None:
        """Both ends give the connection up, for nothing came through for too long."""
        if connection.open:
            self._lost(connection)
            self._end_later(connection.host)

    @property
    def processes(self) -> list[HostProcess]:
        """All hosts that were ever started."""
        return list(self._connections)

    # -- inside

    def _lost(self, connection: Connection) -> None:
        if connection.open:
            connection.open = False
            self._went(connection)

    def _went(self, connection: Connection) -> None:
        number = connection.host.number

        def gone() -> None:
            if self.live.get(number) is connection:
                del self.live[number]
                self._events.append(HostWent(number, connection.host.incarnation))
                if self.parked.get(number):
                    self._join(self.parked[number].popleft())

        self._hear(gone)

    def _end_later(self, host: HostProcess, zombie_s: float | None = None) -> None:
        """A host whose connection ended: it ends too, when it has noticed."""
        if zombie_s is None:
            zombie_s = self._chance.choice((0.0, 0.0, 0.3, 2.0))
        self.zombies.append(host)
        if self._chance.random() < 0.5:
            # Whoever started it believes it dead.
            self._start_later(host.number)

        def end() -> None:
            self.zombies.remove(host)
            if host.alive:
                host.kill()
                self._record(host.name, "ends")
            self._start_later(host.number)

        self.scheduler.after(zombie_s, end)

    def _start_later(self, number: int) -> None:
        if not self._closed and number in self._kept:
            self.scheduler.after(self._chance.uniform(0.01, 0.5), lambda: self._start(number))

    def _start(self, number: int) -> None:
        others = [one.host for one in [*self.live.values(), *self.parked.get(number, ())] if one.host.number == number]
        if self._closed or not self.driver.alive or number not in self._kept or any(host.alive for host in others):
            return
        assert self._program is not None
        self._came[number] = self._came.get(number, 0) + 1
        incarnation = f"h{self.driver.name.split()[-1]}x{number}x{self._came[number]}"
        host = HostProcess(self.scheduler, number, incarnation, self._program, self._disk, self._timing, self._said_by)
        connection = self._connections[host] = Connection(self, host)
        connection.deliver("to driver", lambda: self._hear(lambda: self._join(connection)))

    def _join(self, connection: Connection) -> None:
        host = connection.host
        if self._closed:
            return
        if host.number in self.live:
            self.parked.setdefault(host.number, deque()).append(connection)
            return
        self.live[host.number] = connection
        self._record(host.name, "comes")
        self._events.append(HostCame(host.number, host.incarnation, 0, "here", "here"))

    def _said_by(self, host: HostProcess, data: bytes) -> None:
        connection = self._connections[host]
        for _ in range(1 + (self._chance.random() < self.duplicates)):
            connection.deliver("to driver", lambda: self._hear(lambda: self._said(connection, data)))

    def _said(self, connection: Connection, data: bytes) -> None:
        host, message = connection.host, messages.decode_to_driver(data)
        if isinstance(message, Receipts):
            for receipt in message.receipts:
                self._record(host.name, f"receipt {receipt.work}{'' if connection.open else ' of a zombie'}")
            # What a zombie says carries its incarnation: the tick must not believe it.
            self._events.append(HostSaid(host.number, host.incarnation, message.receipts, message.ended))
        elif isinstance(message, Usage):
            self._events.append(HostUses(host.number, host.incarnation, message))

    def _hear(self, arrive: Callable[[], None]) -> None:
        if self.driver.alive:
            self._arrived.append(arrive)
            self.wake()
