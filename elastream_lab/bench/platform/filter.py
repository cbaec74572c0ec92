"""The filter of the platform benchmark: strings are matched against known patterns, here or by a service elsewhere."""

import re
import time
from functools import cache
from typing import Any

import numpy as np

from elastream.connectors import sources
from elastream.topology import Graph, Topology
from elastream.workload import Arrivals, constant
from elastream_lab.bench.common.work import sink_nothing

FILTERS = ("computes", "waits")
WAIT_S = 0.002
"""How long the service elsewhere takes for a string."""
LINES = 1000
"""Different strings; they come again and again."""
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz     "))
PATTERNS = tuple(
    re.compile(text)
    for text in (
        r"\b(select|union|insert)\b.*\b(from|into)\b",
        r"(\w)\1{4,}",
        r"[aeiou]{7,}",
        r"(\w+) (\w+) \2 \1",
        r"\b(\w{3,})\b.*\b\1\b",
        r"(\w+) .*\b\1ing\b",
    )
)


@cache
def _lines() -> "np.ndarray[Any, Any]":
    random = np.random.default_rng(3)
    return np.array(["".join(letters) for letters in random.choice(LETTERS, (LINES, 160))])


def _made(numbers: Any) -> dict[str, Any]:
    return {"text": _lines()[np.asarray(numbers) % LINES]}


def matches(row: dict[str, Any]) -> bool:
    """Search a string for every pattern: about a fifth of a millisecond of a core."""
    return any(pattern.search(row["text"]) for pattern in PATTERNS)


def asks(row: dict[str, Any]) -> bool:
    """The same question to a service elsewhere, which finds one string in a hundred."""
    time.sleep(WAIT_S)
    return bool(hash(row["text"]) % 100 == 0)


def matching(arrivals: Arrivals | None = None) -> Topology:
    """The application of figures 3 to 5 of the multi-level paper: one spout, one bolt that matches strings."""
    flow = Topology("matching")
    flow.source("strings", sources.replay(arrivals or constant(1000, 60.0), "text string", _made))
    flow.filter("filter", matches, after="strings", replicas=(1, 64))
    flow.output("matched", after="filter")
    return flow


def filter_flow(kind: str, threads: int, arrivals: Arrivals) -> Graph:
    """A source of strings, the filter in so many replicas, and somebody who takes what it found."""
    flow = Topology("platform")
    flow.source("strings", sources.replay(arrivals, "text string", _made))
    if kind == "computes":
        flow.filter("filter", matches, after="strings", replicas=threads)
    else:
        flow.filter("filter", asks, after="strings", replicas=threads, waits=True)
    flow.sink("found", sink_nothing, after="filter")
    return flow.build()
