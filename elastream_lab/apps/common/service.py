"""What the applications' operators have in common: words and numbers a user gives enter, arguments of operators leave."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from elastream.applications.groupings import BUILT_IN, grouping_named
from elastream.errors import SettingError
from elastream.simulator.queue_weighted import QueueWeighted
from elastream.topology import Grouping
from elastream.workload import Arrivals, load_trace


@dataclass(frozen=True)
class Served:
    """An operator's function, and a wait for every tuple that it has served.

    The wait stands for a service elsewhere, so that many replicas can be exercised on few cores. It comes after the
    work: a batch that raises is tried again in halves, and its tuples must not wait at every try.
    """

    function: Callable[..., Any]
    service_ms: float

    def __call__(self, batch: pa.RecordBatch, *more: Any) -> Any:
        result = self.function(batch, *more)
        if self.service_ms:
            time.sleep(batch.num_rows * self.service_ms / 1e3)
        return result


@dataclass(frozen=True)
class ServedKey:
    """The same for a function of a key, its rows and its state."""

    function: Callable[..., Any]
    service_ms: float

    def __call__(self, key: Any, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
        made = list(self.function(key, rows, state) or ())
        if self.service_ms:
            time.sleep(len(rows) * self.service_ms / 1e3)
        return made


@dataclass(frozen=True)
class Service:
    """How every operator of an application is served."""

    grouping: Grouping
    replicas: int
    service_ms: float

    @property
    def how(self) -> dict[str, Any]:
        """The arguments that all operators share."""
        return {"grouping": self.grouping, **self.sizes}

    @property
    def sizes(self) -> dict[str, Any]:
        """The same without the grouping, where an operator has its own."""
        return {"replicas": (1, self.replicas), "waits": self.service_ms > 0}

    def of(self, function: Callable[..., Any]) -> Served:
        return Served(function, self.service_ms)

    def of_key(self, function: Callable[..., Any]) -> ServedKey:
        return ServedKey(function, self.service_ms)


def service(grouping: str, replicas: int, service_ms: float, *, key: str | None = None) -> Service:
    """`key` is the column that tuples are told apart by, where there is one."""
    if not 0 <= service_ms < float("inf"):
        raise SettingError(
            f"service_ms must be 0 or more, got {service_ms!r}; set service_ms=0 for the real work alone"
        )
    return Service(grouping_of(grouping, key), replicas, service_ms)


def grouping_of(word: str, key: str | None = None) -> Grouping:
    """A grouping by name that gives every tuple to one replica; those that read columns are given the key."""
    if word == QueueWeighted.name:
        return QueueWeighted()
    usable: tuple[str, ...] = ("shuffle", "load_balancing", "least_loaded", "local", "global")
    if key is not None:
        usable += ("redirection", "fields", "partial_key")
    if word in BUILT_IN and word not in usable:
        raise SettingError(f"grouping {word!r}: expected one of {', '.join(usable)}")
    return grouping_named(word, *((key,) if key is not None else ()))


def usual_arrivals() -> Arrivals:
    return load_trace("worldcup98_matchday", speed=720, scale=0.0004)
