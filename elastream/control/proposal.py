"""Proposals of policies, and the decisions that guards make of them."""

from dataclasses import dataclass

from elastream.control.search_step import SearchStep
from elastream.fleet import Level


@dataclass(frozen=True)
class Want:
    """How many replicas a policy wants an operator to have, and why."""

    operator: str
    replicas: int
    reason: str
    need: float | None = None
    """The number before it was rounded up to whole replicas, where the policy knows one."""


@dataclass(frozen=True)
class Home:
    """Which host a policy wants a replica to live in, and why."""

    operator: str
    lane: int
    host: int
    reason: str


@dataclass(frozen=True)
class LevelWant:
    """How many containers of a level a policy wants to be there, and why."""

    level: Level
    count: int
    reason: str


@dataclass(frozen=True)
class Proposal:
    """What a policy wants. Operators it does not name stay as they are."""

    wants: tuple[Want, ...] = ()
    homes: tuple[Home, ...] = ()
    """Replicas that shall live in a certain host. Those it does not name live where the plant puts them."""
    search: SearchStep | None = None
    """Where a search stands, when it has come a step further."""

    levels: tuple[LevelWant, ...] = ()
    """Containers. Levels that it does not name stay as they are."""

    alerts: tuple[str, ...] = ()
    """For people: what the policy found that they should know of, whether it wants a change or not."""


@dataclass(frozen=True)
class Decision:
    """What became of one want: carried out when `after` differs from `before`, else vetoed or nothing to do."""

    operator: str
    before: int
    asked: int
    after: int
    reason: str
    """The policy's."""
    vetoes: tuple[str, ...] = ()
    """What the guards said to it."""

    @property
    def rescales(self) -> bool:
        return self.after != self.before

    @property
    def words(self) -> str:
        """The reason, and what the guards made of it."""
        return "; ".join((self.reason, *self.vetoes))


@dataclass(frozen=True)
class LevelDecision:
    """Another number of containers of one level is planned; they are there later, or never."""

    level: Level
    before: int
    """As many as were planned."""
    asked: int
    after: int
    reason: str
    """The policy's."""
    vetoes: tuple[str, ...] = ()
    """What the guards said to it."""
    cost_per_hour: float = 0.0
    """What the change costs, or saves when it is below 0."""

    @property
    def changes(self) -> bool:
        return self.after != self.before

    @property
    def words(self) -> str:
        """The reason, and what the guards made of it."""
        return "; ".join((self.reason, *self.vetoes))


@dataclass(frozen=True)
class Move:
    """A replica changes its host: what became of one home that a policy wants."""

    operator: str
    lane: int
    before: int
    """-1: it lived nowhere yet."""
    after: int
    reason: str
