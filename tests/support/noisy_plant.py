"""An operator on a busy machine, as a fluid: a stationary load with noise, and a price in time for every change of replicas."""

from collections import deque
from dataclasses import dataclass, field, replace
from random import Random

from elastream.control import Observation, Policy, StateMoved
from elastream.testing import observation, operator, source

LOOK_S = 0.125
USABLE = 0.95
"""The share of its time that a replica serves."""


@dataclass
class Load:
    """A rate and a service time, each with noise of its own, as on a machine that has other work."""

    per_second: float = 400.0
    service_s: float = 0.01
    noise: float = 0.25
    """Of the rate, from look to look."""
    busy: float = 0.35
    """By how much services are longer or shorter for some time."""
    lasts_s: float = 1.5
    """For how long, on the average."""


@dataclass
class Played:
    """The sizes over time, and how many tuples were done within the target."""

    sizes: list[int] = field(default_factory=list)
    finished: float = 0.0
    in_time: float = 0.0

    @property
    def rescales(self) -> int:
        return sum(a != b for a, b in zip(self.sizes, self.sizes[1:], strict=False))

    @property
    def replica_seconds(self) -> float:
        return sum(self.sizes) * LOOK_S


def play(
    policy: Policy,
    load: Load,
    *,
    seconds: float = 120.0,
    seed: int = 1,
    by_key: bool = True,
    move_s: float = 0.05,
    most: int = 32,
    target_s: float = 1.0,
    start: int = 5,
) -> Played:
    """Ask the policy at every look, and do what it says. A change of a keyed operator stops it for `move_s`."""
    random, played = Random(seed), Played()
    queue: deque[tuple[float, float]] = deque()
    now_s, size, factor, stalled_s = 0.0, start, 1.0, 0.0
    moves: tuple[StateMoved, ...] = ()
    while now_s < seconds:
        if random.random() < LOOK_S / load.lasts_s:
            factor = max(0.5, 1.0 + load.busy * random.gauss(0.0, 1.0))
        came = max(0.0, load.per_second * LOOK_S * (1.0 + load.noise * random.gauss(0.0, 1.0)))
        queue.append((now_s, came))
        service_s = load.service_s * factor
        works_s = LOOK_S - min(stalled_s, LOOK_S)
        stalled_s = max(0.0, stalled_s - LOOK_S)
        now_s += LOOK_S
        served, left = 0.0, size * USABLE * works_s / service_s
        while queue and left > 1e-9:
            at_s, waits = queue[0]
            part = min(waits, left)
            left, served = left - part, served + part
            played.finished += part
            played.in_time += part if now_s - at_s <= target_s else 0.0
            if part < waits:
                queue[0] = (at_s, waits - part)
            else:
                queue.popleft()
        seen = observation(
            source("in", round(came)),
            operator(
                "count",
                {"in": round(came)},
                service_ms=service_s * 1e3,
                processed=round(served),
                queued=round(sum(waits for _, waits in queue)),
                replicas=size,
                most=most,
                by_key=by_key,
            ),
            seconds=LOOK_S,
            ended_s=now_s,
        )
        size, before = _asked(policy, replace(seen, state_moves=moves), size), size
        moves = ()
        if size != before and by_key:
            stalled_s = move_s
            moves = (StateMoved("count", size, now_s, groups=9, between_hosts=9, took_ms=move_s * 1e3),)
        played.sizes.append(size)
    return played


def _asked(policy: Policy, seen: Observation, size: int) -> int:
    return next((want.replicas for want in policy.propose(seen).wants if want.operator == "count"), size)
