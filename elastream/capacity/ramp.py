"""The application benchmark (algorithm 1): loads rise step by step, a table of configurations leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from elastream.control import Observation, Policy, Proposal
from elastream.errors import SettingError
from elastream.policies.multi_level import MultiLevel
from elastream.policies.multi_level.health import Sources, congested, lowest
from elastream.policies.multi_level.table import Configuration, Table, merged
from elastream.workload import Arrivals, steps

MOST_LEVELS = 1000

LOOKS = 4
"""Observations of each load level, unless the interval is said: as in the paper, 30 s of 2 minutes."""

CLOSE = 0.02
"""An interval belongs to a level when its load is within this part of a step of it: one that saw two levels belongs to none."""


@dataclass(frozen=True)
class Ramp:
    """Loads from one step up to the most, each held for the same time."""

    step: float
    hold_s: float
    most: float

    def __post_init__(self) -> None:
        for name, value in (("step", self.step), ("hold", self.hold_s), ("most", self.most)):
            if not 0 < value < inf:
                raise SettingError(f"ramp: {name} must be more than 0, got {value:g}")
        if not 1 <= self.most / self.step <= MOST_LEVELS:
            raise SettingError(
                f"ramp: most must be 1..{MOST_LEVELS} steps, got {self.most:g} in steps of {self.step:g}"
            )

    @property
    def levels(self) -> list[float]:
        return [self.step * number for number in range(1, int(self.most / self.step + 1e-9) + 1)]

    @property
    def td_s(self) -> float:
        return self.hold_s / LOOKS

    def arrivals(self) -> Arrivals:
        return steps(self.levels, self.hold_s * len(self.levels))


@dataclass(frozen=True)
class Seen:
    """One observation of a level."""

    per_s: float
    configuration: Configuration
    health: float
    """Of the worst instance."""
    problem: str
    """The instance that is congested, or the containers that are missing; empty: all is well."""
    reason: str = ""
    """Of a change."""


@dataclass
class Benchmark(Policy):
    """The policy `multi-level` without a table, which only grows; remembers what it saw."""

    ramp: Ramp
    health: float = 0.9
    overload: float = 0.9
    on_seen: Callable[[Seen], None] = lambda seen: None
    name: str = "ramp"
    start: int | None = 1
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Loads only rise: one observation is a trend.
        self._policy = MultiLevel(health=self.health, overload=self.overload, looks=1)
        self._sources = Sources()

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        self._sources.note(observation)
        proposal = self._policy.propose(observation)
        sick = congested(observation, self._sources, self.health)
        missing = [
            state.problem or f"{state.level.count(state.planned)} planned, {state.there} there"
            for state in observation.fleet
            if state.there < state.planned
        ]
        dearest = sorted(proposal.levels, key=lambda want: want.level.rank, reverse=True)
        reasons = [*(want.reason for want in dearest), *(want.reason for want in proposal.wants), *proposal.alerts]
        seen = Seen(
            self._sources.total / observation.seconds,
            Configuration.planned(observation),
            lowest(observation),
            "; ".join([*([str(sick)] if sick else []), *missing]),
            reasons[0] if reasons else "",
        )
        self.seen.append(seen)
        self.on_seen(seen)
        return proposal


@dataclass(frozen=True)
class Outcome:
    """The table, and the levels of which it says more than was seen."""

    table: Table
    remarks: tuple[str, ...]


def outcome(app: str, ramp: Ramp, seen: Sequence[Seen], health: float = 0.9) -> Outcome:
    """Every level with its last configuration, or, where it was not well then, the next that was.

    What carries a load carries a lower one, too. The table ends where nothing was well any more.
    """
    found: list[tuple[float, Configuration]] = []
    remarks: list[str] = []
    next_well: Configuration | None = None
    for level in reversed(ramp.levels):
        its = [one for one in seen if abs(one.per_s - level) <= CLOSE * ramp.step]
        if its and not its[-1].problem:
            next_well = its[-1].configuration
        else:
            why = f"still not well after {ramp.hold_s:g} s ({its[-1].problem})" if its else "seen in no interval"
            then = (
                "has what carried the next level"
                if next_well
                else "the table ends below it: give it more machines or replicas"
            )
            remarks.append(
                f"{level:,.0f}/s: {why}; it {then}, or hold levels longer"
                if next_well
                else f"{level:,.0f}/s: {why}; {then}"
            )
        if next_well is not None:
            found.append((level, next_well))
    found.reverse()
    remarks.reverse()
    if not found:
        raise SettingError(f"ramp: {remarks[0] if remarks else 'nothing was seen'}")
    return Outcome(merged(app, found, health), tuple(remarks))
