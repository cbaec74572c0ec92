"""A scenario that fails is made smaller, as long as it fails in the same way: fewer faults, tuples, sources and odd constants."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from elastream.errors import SettingError
from elastream.testing.simulation.scenario import Scenario, draw_scenario
from elastream.testing.simulation.world import Outcome, simulate

MOST_TRIES = 250


@dataclass(frozen=True)
class Reduction:
    """What is left of a seed's scenario; None: everything."""

    faults: tuple[int, ...] | None = None
    """Numbers of the faults that happen."""
    tuples: int | None = None
    """So many per source at most."""
    sources: tuple[int, ...] | None = None
    constants: tuple[int, ...] | None = None
    """Numbers of the constants that are not as in production."""

    def of(self, seed: int) -> Scenario:
        """The scenario of a seed, with only this left."""
        scenario = draw_scenario(seed)
        workload, names = scenario.workload, list(scenario.constants)
        if self.tuples is not None:
            workload = workload.smaller(self.tuples)
        if self.sources is not None:
            # Ids are those of the source's place, so the others become empty instead of going.
            feeds = [feed if n in self.sources else replace(feed, tuples=1) for n, feed in enumerate(workload.feeds)]
            workload = replace(workload, feeds=tuple(feeds))
        faults = scenario.faults if self.faults is None else tuple(scenario.faults[n] for n in self.faults)
        kept = names if self.constants is None else [names[n] for n in self.constants]
        return replace(
            scenario, workload=workload, faults=faults, constants={name: scenario.constants[name] for name in kept}
        )

    def __str__(self) -> str:
        """As `read_reduction` reads it."""
        words = [f"tuples={self.tuples}"] if self.tuples is not None else []
        for name in ("faults", "sources", "constants"):
            numbers = getattr(self, name)
            if numbers is not None:
                words.append(f"{name}={','.join(map(str, numbers))}")
        return ";".join(words)


def read_reduction(text: str) -> Reduction:
    """From `faults=3,7;tuples=20`."""
    parts: dict[str, object] = {}
    for word in filter(None, text.split(";")):
        name, _, value = word.partition("=")
        if name not in Reduction.__dataclass_fields__ or not re.fullmatch(r"(\d+(,\d+)*)?", value):
            raise SettingError(f"chaos: --only-with {word!r}: expected faults=3,7;tuples=20;sources=0;constants=1")
        parts[name] = int(value) if name == "tuples" else tuple(int(n) for n in value.split(",") if n)
    return Reduction(**parts)  # type: ignore[arg-type]


def kind_of(violation: str | None) -> str:
    """What two violations have in common: their words without numbers and names."""
    return re.sub(r"\d+|'[^']*'|\[.*?\]|\{.*?\}", "", violation or "")[:40]


class Shrinker:
    """Looks for the smallest reduction of a seed that still fails in the same way."""

    def __init__(self, seed: int, say: Callable[[str], None]) -> None:
        self._seed = seed
        self._say = say
        self._tries = 0
        self.reduction = Reduction()
        self.outcome = simulate(self.reduction.of(seed))
        self._kind = kind_of(self.outcome.violation)

    def shrink(self) -> Outcome:
        """The outcome of the smallest that was found; see `reduction`."""
        if self.outcome.violation is None:
            return self.outcome
        scenario = self.outcome.scenario
        self._fewer("faults", len(scenario.faults))
        for tuples in (2, 5, 10, 20, 50):
            if self._try(replace(self.reduction, tuples=tuples)):
                break
        self._fewer("sources", len(scenario.workload.feeds))
        self._fewer("constants", len(scenario.constants))
        self._fewer("faults", len(scenario.faults))
        return self.outcome

    def _fewer(self, what: str, total: int) -> None:
        """Leave out as many as possible: first large parts, then smaller ones."""
        kept: Sequence[int] = getattr(self.reduction, what)
        if kept is None:
            kept = tuple(range(total))
        size = max(1, len(kept))
        while size:
            at = 0
            while at < len(kept):
                fewer = (*kept[:at], *kept[at + size :])
                if self._try(replace(self.reduction, **{what: fewer})):  # type: ignore[arg-type]
                    kept = fewer
                else:
                    at += size
            size //= 2

    def _try(self, reduction: Reduction) -> bool:
        if self._tries >= MOST_TRIES:
            return False
        self._tries += 1
        outcome = simulate(reduction.of(self._seed))
        if kind_of(outcome.violation) != self._kind:
            return False
        self.reduction, self.outcome = reduction, outcome
        self._say(f"still fails with {len(outcome.scenario.faults)} faults and {len(outcome.history)} events")
        return True
