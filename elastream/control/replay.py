"""Another policy looks at a journal: what would it have decided at each of the recorded observations?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from elastream.control.analyze import analyze
from elastream.control.guard import History
from elastream.control.journal import JournalEntry
from elastream.control.plan import plan
from elastream.control.policy import Policy


@dataclass(frozen=True)
class Replayed:
    """One operator in one interval."""

    t_s: float
    """Since the first interval ended."""
    operator: str
    before: int
    """The replicas it had."""
    recorded: int
    """Those it was given."""
    would_be: int
    """Those it would have been given."""
    reason: str

    @property
    def differs(self) -> bool:
        return self.recorded != self.would_be


def replay(entries: Iterable[JournalEntry], policy: Policy) -> Iterator[Replayed]:
    """The policy sees the observations in their order, as it would have live, and the same guards dispose."""
    first_s: float | None = None
    history = History()
    for entry in entries:
        seen = entry.observation
        first_s = seen.ended_s if first_s is None else first_s
        recorded: dict[str, int] = {decision.operator: decision.after for decision in entry.decisions}
        analysis = analyze(policy, seen)
        decisions = {}
        if analysis.proposal is not None:
            decisions = {d.operator: d for d in plan(seen, analysis.proposal, entry.guards, history).decisions}
        for operator in seen.scalable():
            name = operator.operator
            decision = decisions.get(name)
            after = decision.after if decision else operator.replicas
            reason = decision.words if decision else (analysis.error or "nothing to say")
            if after != operator.replicas:
                history.add(seen.ended_s, [name])
            was = recorded.get(name, operator.replicas)
            yield Replayed(seen.ended_s - first_s, name, operator.replicas, was, after, reason)
