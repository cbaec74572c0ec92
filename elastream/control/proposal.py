"""A policy's part: an observation enters, a proposal leaves. No clock, no I/O, no Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from elastream.control.observation import Observation


@dataclass(frozen=True)
class Want:
    """How many replicas a policy wants an operator to have, and why."""

    operator: str
    replicas: int
    reason: str
    need: float | None = None
    """The number before it was rounded up to whole replicas, where the policy knows one."""


class Restart(StrEnum):
    """Whether the policy's system can only change its size by a restart."""

    NO = "no"
    PAUSES = "pauses"
    """Everything stands still for a while; nothing is lost."""
    LOSES = "loses"
    """Everything stands still for a while, and what is queued is lost."""


@dataclass(frozen=True)
class Home:
    """Which host a policy wants a replica to live in, and why."""

    operator: str
    lane: int
    host: int
    reason: str


@dataclass(frozen=True)
class Proposal:
    """What a policy wants. Operators it does not name stay as they are."""

    wants: tuple[Want, ...] = ()
    restart: Restart = Restart.NO
    homes: tuple[Home, ...] = ()
    """Replicas that shall live in a certain host. Those it does not name live where the plant puts them."""

    def to_json(self) -> dict[str, Any]:
        return {
            "wants": [vars(want) for want in self.wants],
            "restart": self.restart.value,
            "homes": [vars(home) for home in self.homes],
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Proposal:
        wants, restart = tuple(Want(**want) for want in document["wants"]), document["restart"]
        # Journals of 0.1 knew one kind of restart.
        known = {True: Restart.LOSES, False: Restart.NO}.get(restart) if isinstance(restart, bool) else None
        return cls(wants, known or Restart(restart), tuple(Home(**home) for home in document.get("homes", ())))


class Policy(Protocol):
    """Proposes sizes. The same observations in the same order must give the same proposals.

    One that cannot wait for the end of an interval of `td_s` has an `every_s` too: it is asked at least so often.
    """

    @property
    def name(self) -> str: ...

    @property
    def start(self) -> int | None:
        """How many replicas operators of a new run begin with; None: as the topology says."""
        ...

    def propose(self, observation: Observation) -> Proposal: ...


@dataclass(frozen=True)
class Decision:
    """What became of one want: carried out when `after` differs from `before`, else vetoed or nothing to do."""

    operator: str
    before: int
    asked: int
    after: int
    reason: str
    """The policy's."""
    vetoes: tuple[str, ...] = field(default=())
    """What the guards said to it."""

    @property
    def rescales(self) -> bool:
        return self.after != self.before

    @property
    def words(self) -> str:
        """The reason, and what the guards made of it."""
        return "; ".join((self.reason, *self.vetoes))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Decision:
        return cls(**{**document, "vetoes": tuple(document["vetoes"])})


@dataclass(frozen=True)
class Move:
    """A replica changes its host: what became of one home that a policy wants."""

    operator: str
    lane: int
    before: int
    """-1: it lived nowhere yet."""
    after: int
    reason: str
