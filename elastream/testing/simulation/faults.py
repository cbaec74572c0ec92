"""Faults as data: a list drawn from a seed, so that a shrinker can leave some out; and what goes wrong with storage now."""

import random
from dataclasses import dataclass

from elastream.testing.simulation.scheduler import Process

CRASH_POINTS = (
    "before_commit",
    "in_commit",
    "after_commit",
    "before_send",
    "before_change",
    "in_change",
    "after_change",
)
"""Where a driver dies: around the write of an entry, before works leave, and around any other change of a file."""

KINDS = {
    "kill host": 5.0,
    "vanish host": 1.0,
    "pause host": 4.0,
    "drop connection": 3.0,
    "hold messages to host": 2.0,
    "hold messages to driver": 2.0,
    "repeat receipts": 1.0,
    "crash driver": 3.0,
    "pause driver": 1.0,
    "start rival driver": 0.7,
    "stop driver": 1.0,
    "slow storage": 1.0,
    "fail storage": 1.0,
    "fill disk": 0.5,
    "step clock": 1.0,
    "rescale": 12.0,
    "set hosts": 4.0,
    "set seats": 1.0,
    "move groups": 5.0,
    "pin lane": 2.0,
    "discard": 0.3,
}
"""Each kind with its weight. To add one: name it here, and say in `actions` what it does."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong, or that somebody decides. `a`, `b` and `c` are fractions that choose its target and size."""

    at_s: float
    kind: str
    a: float
    b: float
    c: float

    def __str__(self) -> str:
        return f"{self.kind} ({self.a:.3f}, {self.b:.3f}, {self.c:.3f})"


THEMES: dict[str, tuple[str, ...]] = {
    "everything": tuple(KINDS),
    "state": ("rescale", "move groups", "pin lane", "set hosts", "kill host", "pause host"),
    "hosts": ("kill host", "vanish host", "pause host", "drop connection", "set hosts", "rescale", "repeat receipts"),
    "network": (
        "hold messages to host",
        "hold messages to driver",
        "pause host",
        "drop connection",
        "rescale",
        "move groups",
    ),
    "driver": (
        "crash driver",
        "pause driver",
        "start rival driver",
        "stop driver",
        "slow storage",
        "kill host",
        "rescale",
    ),
    "storage": ("slow storage", "fail storage", "fill disk", "crash driver", "rescale", "kill host"),
}
"""Kinds that belong together: a history of few kinds goes deeper than one of all."""


def draw_faults(chance: random.Random, seconds: float) -> tuple[Fault, ...]:
    """Of the kinds of one theme, or of all; fewer or more of them."""
    kinds = [kind for kind in THEMES[chance.choice([*THEMES, "state", "state", "hosts"])] if chance.random() < 0.8]
    count = chance.choice((0, 5, 20, 40, 80))
    if not kinds or not count:
        return ()
    weights = [KINDS[kind] for kind in kinds]
    faults = [
        Fault(
            round(chance.uniform(0.0, seconds), 4),
            chance.choices(kinds, weights)[0],
            *(chance.random() for _ in range(3)),
        )
        for _ in range(count)
    ]
    return tuple(sorted(faults, key=lambda fault: fault.at_s))


class StorageWeather:
    """What storage is like now. Implements the port `StorageFaults`."""

    def __init__(self, chance: random.Random, mean_s: float) -> None:
        self._chance = chance
        self._mean_s = mean_s
        self.slow_until_s = 0.0
        self.slow = 1.0
        self.full_until_s = 0.0
        self.failing: list[str] = []
        """Operations of which the next one fails."""
        self.crash_point: str | None = None
        """Where the driver dies when it comes there."""
        self.victim: Process | None = None
        self.failures = 0
        """How many operations have failed so far."""

    def latency_s(self, process: Process, operation: str, name: str) -> float:
        slow = self.slow if process.scheduler.now < self.slow_until_s else 1.0
        return self._chance.expovariate(1.0) * self._mean_s * slow

    def failure(self, process: Process, operation: str, name: str) -> OSError | None:
        changes = operation in ("write", "append", "create")
        if changes and process.scheduler.now < self.full_until_s:
            self.failures += 1
            return OSError(28, "No space left on device")
        kind = "change" if changes else operation
        if kind in self.failing:
            self.failing.remove(kind)
            self.failures += 1
            return OSError(5, "Input/output error")
        return None

    def crash(self, process: Process, point: str, name: str) -> bool:
        if self.crash_point is None or process is not self.victim:
            return False
        when, _, operation = point.partition(" ")
        commits = name.startswith("ledger/") and operation in ("append", "write")
        return self._reached(f"{when}_commit" if commits else f"{when}_change")

    def before_send(self, process: Process) -> None:
        if process is self.victim and self._reached("before_send"):
            process.kill()
            process.check()

    def _reached(self, point: str) -> bool:
        if point != self.crash_point:
            return False
        self.crash_point = None
        return True
