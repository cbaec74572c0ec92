"""Random graphs whose results can be recounted: sources, stateless operators, keyed counts, timers, windows and sinks."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.engine.worker.delivery import Delivery
from elastream.settings import QueueSettings, Settings, StateSettings, WorkSettings
from elastream.topology import Graph, Topology, groupings, parse_schema
from elastream.workload import Arrivals
from elastream.workload.replay import Replay

ROW = "id long, key long, at timestamp, n long, h long"
MODULUS = (1 << 61) - 1
ORIGIN_S = 1_700_000_000
"""When the first event happened, and when the simulation begins."""

SHIFT = 1_000_000
"""Between the ids of two sources."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Feed:
    """One source, and the operator behind it."""

    tuples: int
    per_s: float
    parts: int
    through: str
    """`map`, `filter`, `flat_map`, `batch`, or nothing."""
    chained: bool
    jitter_s: float
    """By how much events are out of order."""
    failing: frozenset[int] = frozenset()
    """Ids on which the operator raises."""
    fatal: frozenset[int] = frozenset()
    """Ids that end the process."""


@dataclass(frozen=True)
class Workload:
    """One graph with its tuples and settings. `limits`: per operator, the least and most replicas."""

    feeds: tuple[Feed, ...]
    keys: int
    branches: tuple[str, ...]
    """Of `count`, `timer`, `window`, `plain`."""
    grouping: str
    """How keyed operators are reached: `fields` or `redirection`."""
    waits: bool
    behind_count: bool
    """True: a stateless operator stands between the count and its sink."""
    every_s: float
    lateness_s: float
    wake_s: float
    by_event: bool
    settings: Settings
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """True when nothing may be dropped but what fails."""
        return self.settings.queues.on_full == "wait"

    @property
    def scalable(self) -> list[str]:
        return sorted(self.limits)

    def source_rows(self, number: int) -> Iterator[tuple[int, int]]:
        """(id, key) of all tuples that leave the operator behind a source, with those that fail left out."""
        feed = self.feeds[number]
        for place in range(feed.tuples):
            identity = _id(number, place)
            if identity not in feed.failing and identity not in feed.fatal:
                for made in _through(feed.through, identity):
                    yield made, key_of(identity, self.keys)

    def expected(self) -> Counter[tuple[int, int]]:
        """(id, key) of all tuples that reach the branches."""
        return Counter(row for number in range(len(self.feeds)) for row in self.source_rows(number))

    @property
    def failures(self) -> int:
        """Tuples that must end in the dead letters."""
        return sum(len(feed.failing | feed.fatal) for feed in self.feeds)

    def smaller(self, tuples: int) -> "Workload":
        """The same with fewer tuples."""
        return replace(self, feeds=tuple(replace(feed, tuples=min(feed.tuples, tuples)) for feed in self.feeds))


Deliver = Callable[[pa.RecordBatch, Delivery], object]


def draw_workload(chance: random.Random) -> Workload:
    """Small enough that a history has some hundred works."""
    feeds = []
    for number in range(chance.choice((1, 1, 2, 3))):
        tuples, seconds = chance.randrange(5, 100), chance.uniform(0.5, 4.0)
        through = chance.choice(("map", "filter", "flat_map", "batch", ""))
        chained = chance.random() < 0.3
        ids = [_id(number, chance.randrange(tuples)) for _ in range(chance.choice((0, 0, 1, 3)))] if through else []
        # A source whose tuples end its process would never get on.
        deadly = [ids.pop()] if ids and through != "batch" and not chained and chance.random() < 0.3 else []
        feeds.append(
            Feed(
                tuples,
                tuples / seconds,
                chance.choice((1, 1, 2)),
                through,
                chained,
                chance.choice((0.0, 0.5, 3.0)),
                frozenset(ids) - frozenset(deadly) if through != "batch" else frozenset(),
                frozenset(deadly),
            )
        )
    branches = ["count", *(name for name in ("timer", "window", "plain") if chance.random() < 0.4)]
    workload = Workload(
        tuple(feeds),
        chance.choice((3, 20, 100)),
        tuple(branches),
        chance.choice(("fields", "fields", "redirection")),
        chance.random() < 0.5,
        chance.random() < 0.5,
        chance.choice((0.5, 2.0)),
        1e6,
        chance.choice((0.2, 1.0)),
        chance.random() < 0.5,
        draw_settings(chance),
    )
    return replace(workload, limits=draw_limits(chance, _names(workload)))


def draw_settings(chance: random.Random) -> Settings:
    budget_s = chance.choice((0.01, 0.05))
    q_size = chance.choice((None, None, 5, 50))
    on_full: Literal["wait", "drop"] = chance.choice(("wait", "wait", "wait", "drop"))
    ring_s = chance.choice((None, 0.05, 0.3))
    timeout_s = chance.choice((2.0, 8.0))
    return Settings(
        queues=QueueSettings(q_size=q_size, on_full=on_full),
        state=StateSettings(ring_s=ring_s),
        works=WorkSettings(budget_s=budget_s, timeout_s=timeout_s),
    )


def draw_limits(chance: random.Random, names: list[str]) -> dict[str, tuple[int, int]]:
    limits = {}
    for name in names:
        least = chance.choice((1, 1, 2))
        # Keys must move.
        more = chance.choice((1, 3, 3)) if name in ("count", "timer", "window") else chance.choice((0, 1, 3))
        limits[name] = least, least + more
    return limits


def build(workload: Workload, deliver: Deliver, wall_s: Callable[[], float], die: Callable[[], None]) -> Graph:
    """The graph. `die` ends the process that calls it; functions may wake keys by `wall_s`."""
    flow = Topology("simulated")
    heads = []
    for number, feed in enumerate(workload.feeds):
        source = f"in{number}"
        ends_s = feed.tuples / feed.per_s
        arrivals = Arrivals((0.0, ends_s), (0.0, float(feed.tuples)))
        flow.source(
            source, Replay(arrivals, parse_schema(ROW), _maker(number, feed, workload.keys)), replicas=feed.parts
        )
        heads.append(_add_through(flow, workload, number, feed, die))
    limits = workload.limits
    if "count" in workload.branches:
        flow.key_by("key", redirect=workload.grouping != "fields", after=heads).process(
            "count",
            _count,
            state="n long, h long",
            initial={"n": 0, "h": 0},
            schema=ROW,
            replicas=limits["count"],
            waits=workload.waits,
        )
        last = "count"
        if workload.behind_count:
            flow.map("behind", _same, after="count", replicas=limits["behind"], grouping=groupings.shuffle)
            last = "behind"
        flow.sink("counted", deliver, after=last, replicas=limits["counted"])
    if "timer" in workload.branches:
        timing: Any = {"event_time": "at", "lateness_s": 0.0} if workload.by_event else {}
        flow.key_by("key", after=heads).process(
            "timer",
            _timer(workload, wall_s),
            state="n long, pending long",
            initial={"n": 0, "pending": 0},
            schema="key long, n long",
            on_timer=_on_timer,
            replicas=limits["timer"],
            **timing,
        )
        flow.sink("woken", deliver, after="timer", replicas=limits["woken"])
    if "window" in workload.branches:
        flow.key_by("key", after=heads).window(
            "window",
            time="at",
            aggregate={"n": "count()", "total": "sum(id)"},
            every_s=workload.every_s,
            lateness_s=workload.lateness_s,
            replicas=limits["window"],
        )
        flow.sink("windows", deliver, after="window", replicas=limits["windows"])
    if "plain" in workload.branches:
        flow.sink("plain", deliver, after=heads, replicas=limits["plain"])
    return flow.build()


def key_of(identity: int, keys: int) -> int:
    return identity // 10 * 7919 % keys


def at_us(identity: int, per_s: float, jitter_s: float) -> int:
    """When an event happened."""
    number = identity // 10 % (SHIFT // 10)
    return int((ORIGIN_S + number / per_s - identity * 31 % 97 / 97 * jitter_s) * 1e6)


# -- inside


def _names(workload: Workload) -> list[str]:
    """Operators with replicas of their own."""
    names = [f"op{n}" for n, feed in enumerate(workload.feeds) if feed.through and not feed.chained]
    for branch, operators in (
        ("count", ["count", "counted"]),
        ("timer", ["timer", "woken"]),
        ("window", ["window", "windows"]),
        ("plain", ["plain"]),
    ):
        names += operators if branch in workload.branches else []
    return [*names, "behind"] if workload.behind_count and "count" in workload.branches else names


def _id(source: int, place: int) -> int:
    return source * SHIFT + place * 10


def _through(kind: str, identity: int) -> list[int]:
    if kind == "filter":
        return [identity] if identity // 10 % 5 else []
    if kind == "flat_map":
        return [identity + more for more in range(identity // 10 % 3)]
    return [identity]


def _maker(source: int, feed: Feed, keys: int) -> Callable[[npt.NDArray[np.int64]], pa.RecordBatch]:
    schema = parse_schema(ROW)

    def make(numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        ids = [_id(source, place) for place in numbers.tolist()]
        zeros = [0] * len(ids)
        times = [at_us(identity, feed.per_s, feed.jitter_s) for identity in ids]
        columns = [ids, [key_of(identity, keys) for identity in ids], times, zeros, zeros]
        arrays = [pa.array(column, pa.int64()) for column in columns]
        arrays[2] = arrays[2].cast(schema.field("at").type)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return make


def _add_through(flow: Topology, workload: Workload, number: int, feed: Feed, die: Callable[[], None]) -> str:
    source, name = f"in{number}", f"op{number}"
    if not feed.through:
        return source

    def check(row: Row) -> None:
        if row["id"] in feed.failing:
            raise ValueError("this tuple fails")
        if row["id"] in feed.fatal:
            die()

    def one(row: Row) -> Any:
        check(row)
        if feed.through == "filter":
            return bool(_through("filter", row["id"]))
        if feed.through == "flat_map":
            return [{**row, "id": identity} for identity in _through("flat_map", row["id"])]
        return row

    how: Any = (
        {"after": source, "chain": True} if feed.chained else {"after": source, "replicas": workload.limits[name]}
    )
    if feed.through == "batch":
        flow.batch(name, lambda batch: batch, **how)
    else:
        getattr(flow, feed.through)(name, one, **how)
    return name


def _same(row: Row) -> Row:
    return row


def _count(key: int, rows: list[Row], state: Any) -> Iterator[Row]:
    for row in rows:
        state.n += 1
        state.h = (state.h * 31 + row["id"] + 1) % MODULUS
        yield {**row, "n": state.n, "h": state.h}


def fold(h: int, identity: int) -> int:
    """The same for a recount: depends on the order of tuples."""
    return (h * 31 + identity + 1) % MODULUS


def _timer(workload: Workload, wall_s: Callable[[], float]) -> Callable[[int, list[Row], Any], list[Row]]:
    def serve(key: int, rows: list[Row], state: Any) -> list[Row]:
        for row in rows:
            state.n += 1
            state.pending += 1
            if workload.by_event:
                state.wake_at_event(row["at"].timestamp() + workload.wake_s)
            elif state.pending == 1:
                state.wake_at(wall_s() + workload.wake_s)
        return []

    return serve


def _on_timer(key: int, at_s: float, state: Any) -> Iterator[Row]:
    if state.pending:
        yield {"key": key, "n": state.pending}
    state.pending = 0
