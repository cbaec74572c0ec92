"""Recording a run: the ports of its driver, each of which notes on the tape what passes through it."""

import threading
from collections.abc import Callable

import msgspec

from elastream.engine.clock import Clock
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.lifecycle import Phase, Resize, RunLife
from elastream.engine.driver.requests import Request
from elastream.engine.driver.run_base import RunBase
from elastream.engine.hosts.link import Event, HostLink
from elastream.engine.messages import ToHost
from elastream.engine.tape.tape import EVENT_TYPES, Header, Step, TapedRequest, TapeWriter, digest
from elastream.fleet.machines import MachineFacts, Machines
from elastream.lanes.entries import Entry
from elastream.lanes.lease import Machine
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store
from elastream.settings import Settings


class TapeRecorder:
    """The step that goes on. Threads other than the driver's are not recorded."""

    def __init__(self, path: str) -> None:
        self._writer = TapeWriter(path)
        self._thread: threading.Thread | None = None
        self.step = Step()

    def begin(self, header: Header) -> None:
        """The driver is about to be made, in this thread."""
        self._writer.write(header)
        self._thread = threading.current_thread()

    def run(self, loop: Callable[[], None]) -> None:
        """Run the driver's loop in this thread, and record it."""
        self._thread = threading.current_thread()
        try:
            loop()
        finally:
            self._thread = None
            self._writer.write(self.step)
            self._writer.close()

    @property
    def is_here(self) -> bool:
        """True in the driver's thread."""
        return threading.current_thread() is self._thread

    def next_step(self, events: list[Event], *, stopping: bool) -> None:
        self._writer.write(self.step)
        self.step = Step([EVENT_TYPES[type(event)](event) for event in events], stopping)


class TapedClock:
    """Notes every reading in the driver's thread."""

    def __init__(self, clock: Clock, tape: TapeRecorder) -> None:
        self._clock = clock
        self._tape = tape

    def now(self) -> float:
        return self._note(self._clock.now(), self._tape.step.now)

    def wall_s(self) -> float:
        return self._note(self._clock.wall_s(), self._tape.step.wall)

    def cpu_s(self) -> float:
        return self._note(self._clock.cpu_s(), self._tape.step.cpu)

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def _note(self, reading: float, readings: list[float]) -> float:
        if self._tape.is_here:
            readings.append(reading)
        return reading


class TapedLink:
    """Notes events and messages."""

    def __init__(self, link: HostLink, tape: TapeRecorder, life: RunLife) -> None:
        self._link = link
        self._tape = tape
        self._life = life
        self.wake, self.keep, self.end, self.replace = link.wake, link.keep, link.end, link.replace
        self.last_words, self.close = link.last_words, link.close

    def poll(self, timeout_s: float) -> list[Event]:
        events = self._link.poll(timeout_s)
        self._tape.next_step(events, stopping=self._life.phase is Phase.STOPPING)
        return events

    def send(self, host: int, message: ToHost) -> None:
        self._tape.step.sent.append((host, digest(message)))
        self._link.send(host, message)


class TapedBase(RunBase):
    """Notes entries."""

    def __init__(
        self, tape: TapeRecorder, store: Store, clock: Clock, machine: Machine | None = None, owner: str | None = None
    ) -> None:
        super().__init__(store, clock, machine, owner)
        self._tape = tape

    def write(self, entry: Entry) -> None:
        self._tape.step.entries.append(digest(entry))
        super().write(entry)


class TapedLife(RunLife):
    """Notes requests and sizes."""

    def __init__(self, clock: Clock, wake: Callable[[], object], tape: TapeRecorder) -> None:
        super().__init__(clock, wake)
        self._tape = tape

    def take(self, carry_out: Callable[[Request], object]) -> dict[str, Resize]:
        sizes = super().take(carry_out)
        self._tape.step.sizes.append(sizes)
        return sizes

    def _carry_out(self, carry_out: Callable[[Request], object]) -> None:
        # In virtual time listeners ask in the driver's thread, after the tick has taken its requests.
        requests = self._tape.step.later_requests if self._tape.step.sizes else self._tape.step.requests

        def noted(request: Request) -> object:
            requests.append(TapedRequest(type(request).__name__, msgspec.to_builtins(request)))
            return carry_out(request)

        super()._carry_out(noted)


class TapedHousekeeping(Housekeeping):
    """Notes what may go from outputs and dead letters."""

    def __init__(
        self, tape: TapeRecorder, store: Store, settings: Settings, outputs: tuple[str, ...], *, inline: bool
    ) -> None:
        super().__init__(store, settings, outputs, inline=inline)
        self._tape = tape

    def take(self, state: LedgerState) -> tuple[list[tuple[str, int, int]], int]:
        taken = super().take(state)
        self._tape.step.housekept.append(taken)
        return taken


class TapedMachines:
    """Notes which executors are there."""

    def __init__(self, machines: Machines, tape: TapeRecorder) -> None:
        self._machines = machines
        self._tape = tape
        self.ask, self.give_back = machines.ask, machines.give_back

    @property
    def most(self) -> int:
        most = self._machines.most
        if self._tape.is_here:
            self._tape.step.most_machines.append(most)
        return most

    def look(self) -> MachineFacts:
        facts = self._machines.look()
        if self._tape.is_here:
            self._tape.step.machines.append(facts)
        return facts
