"""Replaying a tape: the same driver code makes the same ticks again, without hosts, Spark or the base.

What goes out is compared with the tape. A driver whose code was changed differs in some step: that step is named.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from elastream.engine.clock import VirtualClock
from elastream.engine.driver import requests as request_types
from elastream.engine.driver.build import DriverInputs, make_driver, make_loop
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.lifecycle import Resize, RunLife
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.publish import Publisher
from elastream.engine.driver.requests import Request
from elastream.engine.driver.run_base import RunBase
from elastream.engine.driver.status import RunStatus
from elastream.engine.driver.tables import make_tables
from elastream.engine.hosts.link import Event
from elastream.engine.messages import ToHost
from elastream.engine.tape.tape import Step, TapedRequest, digest, read_tape
from elastream.errors import ElastreamError, SettingError
from elastream.fleet.machines import MachineFacts
from elastream.lanes.entries import Entry
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store
from elastream.topology import Graph


class _TapeEnded(Exception):
    """The tape has no more steps."""


class Diverged(ElastreamError):
    """The driver does not do what it did when the tape was recorded."""


@dataclass(frozen=True)
class ReplayedStep:
    """One step of the driver: its events, and the entries and messages that came of them."""

    number: int
    at_s: float
    """Wall time, as far as it was read."""
    events: tuple[Event, ...]
    entries: tuple[Entry, ...]
    sent: tuple[tuple[int, ToHost], ...]


class TapePlayer:
    """The ports of a driver, played from a tape. What goes out is kept and compared."""

    def __init__(self, steps: Iterator[Step], on_step: Callable[[ReplayedStep], object]) -> None:
        self._steps = steps
        self._on_step = on_step
        self._number = 0
        self._at_s = 0.0
        self._events: tuple[Event, ...] = ()
        self._entries: list[Entry] = []
        self._sent: list[tuple[int, ToHost]] = []
        self.step = next(steps, Step())

    def next_step(self) -> list[Event]:
        """End the step that goes on: compare it, tell of it, and give the events of the next."""
        self.end_step()
        step = next(self._steps, None)
        if step is None:
            raise _TapeEnded
        self.step = step
        self._number += 1
        events = [taped.event for taped in step.events]
        self._events, self._entries, self._sent = tuple(events), [], []
        return events

    def end_step(self) -> None:
        step = ReplayedStep(self._number, self._at_s, self._events, tuple(self._entries), tuple(self._sent))
        self._on_step(step)
        self._compare("entries", [digest(entry) for entry in self._entries], self.step.entries)
        self._compare("messages", [(host, digest(message)) for host, message in self._sent], self.step.sent)

    def take(self, readings: list[Any], name: str) -> Any:
        if not readings:
            raise Diverged(f"step {self._number}: the driver asks for {name} more often than when it was recorded")
        return readings.pop(0)

    def wall_s(self) -> float:
        self._at_s = float(self.take(self.step.wall, "the wall clock"))
        return self._at_s

    def wrote(self, entry: Entry) -> None:
        self._entries.append(entry)

    def sends(self, host: int, message: ToHost) -> None:
        self._sent.append((host, message))

    def _compare(self, name: str, now: list[Any], then: list[Any]) -> None:
        if now != list(then):
            at = next((n for n, (a, b) in enumerate(zip(now, then, strict=False)) if a != b), min(len(now), len(then)))
            raise Diverged(
                f"step {self._number}: other {name} than when it was recorded: {len(now)} instead of {len(then)}, "
                f"the first difference is in number {at}"
            )


class _Clock:
    def __init__(self, player: TapePlayer) -> None:
        self._player = player

    def now(self) -> float:
        return float(self._player.take(self._player.step.now, "the clock"))

    def wall_s(self) -> float:
        return self._player.wall_s()

    def cpu_s(self) -> float:
        return float(self._player.take(self._player.step.cpu, "CPU time"))

    def sleep(self, seconds: float) -> None:
        """Nothing passes."""


class _Link:
    def __init__(self, player: TapePlayer, stop: Callable[[], object]) -> None:
        self._player = player
        self._stop = stop

    def poll(self, timeout_s: float) -> list[Event]:
        events = self._player.next_step()
        if self._player.step.stopping:
            self._stop()
        return events

    def send(self, host: int, message: ToHost) -> None:
        # A message is compared when the step ends, and its lists may change until then.
        self._player.sends(host, msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)))

    def last_words(self) -> str:
        return ""

    def wake(self) -> None: ...
    def keep(self, host: int) -> None: ...
    def end(self, host: int) -> None: ...
    def replace(self, host: int) -> None: ...
    def close(self) -> None: ...


class _Base(RunBase):
    def __init__(self, player: TapePlayer, store: Store, state: LedgerState) -> None:
        super().__init__(store, VirtualClock())
        self.state = state
        self._player = player

    def keep(self) -> None:
        """There is no lease."""

    def write(self, entry: Entry) -> None:
        self._player.wrote(entry)


class _Life(RunLife):
    def __init__(self, player: TapePlayer, clock: _Clock) -> None:
        super().__init__(clock, lambda: None)
        self._player = player

    def take(self, carry_out: Callable[[Request], object]) -> dict[str, Resize]:
        self._repeat(self._player.step.requests, carry_out)
        sizes: dict[str, Resize] = self._player.take(self._player.step.sizes, "sizes")
        return sizes

    def after_tick(self) -> None:
        """Repeat what was asked for between this tick and the next."""
        if self._here is not None:
            self._repeat(self._player.step.later_requests, self._here)

    def _repeat(self, requests: list[TapedRequest], carry_out: Callable[[Request], object]) -> None:
        for taped in requests:
            kind = getattr(request_types, taped.kind, None)
            if kind is None:
                raise SettingError(f"tape: request {taped.kind!r} is not known")
            carry_out(msgspec.convert(taped.fields, kind))


class _Housekeeping(Housekeeping):
    def __init__(self, player: TapePlayer, store: Store, settings: Any) -> None:
        super().__init__(store, settings, (), inline=True)
        self._player = player

    def step(self, state: LedgerState, now: float, wall_s: float) -> None:
        """Nothing is looked at."""

    def take(self, state: LedgerState) -> tuple[list[tuple[str, int, int]], int]:
        read, expired = self._player.take(self._player.step.housekept, "housekeeping")
        return read, expired


class _Machines:
    def __init__(self, player: TapePlayer) -> None:
        self._player = player

    @property
    def most(self) -> int:
        return int(self._player.take(self._player.step.most_machines, "executors"))

    def look(self) -> MachineFacts:
        facts: MachineFacts = self._player.take(self._player.step.machines, "executors")
        return facts

    def ask(self, total: int) -> None: ...
    def give_back(self, names: tuple[str, ...], total: int) -> None: ...


class _Publisher(Publisher):
    def __init__(self, life: _Life) -> None:
        self.latest = RunStatus()
        self._life = life

    def after_tick(self, tick: Tick | None) -> None:
        self._life.after_tick()

    def publish(self) -> None: ...


def replay_tape(path: str, graph: Graph, on_step: Callable[[ReplayedStep], object] = lambda step: None) -> int:
    """Make the ticks of a tape again; gives the number of steps. Raises `Diverged` at the first difference."""
    header, steps = read_tape(path)
    if header.graph != graph.name:
        raise SettingError(f"tape {path}: is of the application {header.graph!r}, given was {graph.name!r}")
    count = 0

    def counted(step: ReplayedStep) -> None:
        nonlocal count
        count += 1
        on_step(step)

    player = TapePlayer(steps, counted)
    clock = _Clock(player)
    with tempfile.TemporaryDirectory(prefix="elastream-tape-") as folder:
        store, life = Store(folder), _Life(player, clock)
        base = _Base(player, store, LedgerState.restored(header.snapshot))
        housekeeping = _Housekeeping(player, store, header.settings)
        link = _Link(player, life.stop)
        around = DriverInputs(graph, header.settings, base, link, _Machines(player), clock, life, housekeeping)
        driver = make_driver(around, make_tables(graph, header.settings, base.state, header.interval_s))
        make_loop(around, driver, _Publisher(life), header.first_entry, timing_s=header.timing_s).run()
    if life.error is not None and not isinstance(life.error, _TapeEnded):
        raise life.error
    return count
