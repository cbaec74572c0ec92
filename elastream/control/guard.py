"""The contract of a guard: a draft of what shall be done enters, verdicts on some of it leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from elastream.control.observation import Observation
from elastream.control.proposal import Proposal
from elastream.fleet import Level

Subject = str | Level
"""An operator by its name, or a level of containers."""

MOST_CHANGES = 10_000
"""That are remembered, the newest."""


@dataclass
class History:
    """Changes of a run so far."""

    rescaled_s: dict[str, float] = field(default_factory=dict)
    """When each operator was rescaled last."""
    changed_s: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))
    """When something was changed, an operator or a level; the newest last."""

    def add(self, at_s: float, subjects: Iterable[Subject]) -> None:
        for subject in subjects:
            self.changed_s.append(at_s)
            if isinstance(subject, str):
                self.rescaled_s[subject] = at_s


@dataclass(frozen=True)
class Verdict:
    """Another size than the draft has, and why."""

    of: Subject
    size: int
    why: str


@dataclass(frozen=True)
class Draft:
    """Sizes as they are to be, after the guards that have looked already."""

    observation: Observation
    proposal: Proposal
    history: History
    before: Mapping[Subject, int]
    """Of all operators that can be rescaled, and of all levels, as they were planned until now."""
    after: Mapping[Subject, int]

    @property
    def changed(self) -> list[Subject]:
        return [subject for subject, size in self.after.items() if size != self.before[subject]]

    def grows(self, subject: Subject) -> bool:
        return self.after[subject] > self.before[subject]


class Guard(Protocol):
    """Says what a policy may not do. A pure function of the draft."""

    def judge(self, draft: Draft) -> Iterable[Verdict]: ...
