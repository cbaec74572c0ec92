"""Plan: the guards look at what the policy wants; decisions leave, each with the policy's reason and the guards'."""

from dataclasses import dataclass, replace

from elastream.control.guard import Draft, History, Subject
from elastream.control.guards import Guards
from elastream.control.observation import Observation
from elastream.control.proposal import Decision, LevelDecision, Move, Proposal
from elastream.fleet import Level

UNASKED = "the policy wants no change"


@dataclass(frozen=True)
class Planned:
    """What shall be done about one interval, and what shall not."""

    decisions: tuple[Decision, ...] = ()
    levels: tuple[LevelDecision, ...] = ()
    moves: tuple[Move, ...] = ()

    @property
    def changed(self) -> list[Subject]:
        """Operators and levels that become another size."""
        rescaled: list[Subject] = [decision.operator for decision in self.decisions if decision.rescales]
        return [*rescaled, *(decision.level for decision in self.levels if decision.changes)]


def plan(observation: Observation, proposal: Proposal, guards: Guards, history: History) -> Planned:
    """One decision for each want, and for each size that a guard changes although nobody asked."""
    before: dict[Subject, int] = {operator.operator: operator.replicas for operator in observation.scalable()}
    before |= {state.level: state.planned for state in observation.fleet}
    asked: dict[Subject, int] = {want.operator: want.replicas for want in proposal.wants}
    asked |= {want.level: want.count for want in proposal.levels if want.level in before}
    draft = Draft(observation, proposal, history, before, before | asked)
    vetoes: dict[Subject, list[str]] = {}
    for guard in guards.all():
        verdicts = tuple(guard.judge(draft))
        if verdicts:
            draft = replace(draft, after={**draft.after, **{verdict.of: verdict.size for verdict in verdicts}})
        for verdict in verdicts:
            vetoes.setdefault(verdict.of, []).append(verdict.why)
    reasons: dict[Subject, str] = {want.operator: want.reason for want in proposal.wants}
    reasons |= {want.level: want.reason for want in proposal.levels}
    decisions: list[Decision] = []
    levels: list[LevelDecision] = []
    for subject in dict.fromkeys((*asked, *vetoes)):
        said = tuple(vetoes.get(subject, ()))
        then, now = before[subject], draft.after[subject]
        wanted, reason = asked.get(subject, then), reasons.get(subject, UNASKED)
        if isinstance(subject, Level):
            more = guards.prices.per_hour({**before, subject: now}) - guards.prices.per_hour(before)
            levels.append(LevelDecision(subject, then, wanted, now, reason, said, more))
        else:
            decisions.append(Decision(subject, then, wanted, now, reason, said))
    return Planned(tuple(decisions), tuple(levels), _moves(observation, proposal, guards))


def _moves(observation: Observation, proposal: Proposal, guards: Guards) -> tuple[Move, ...]:
    """The replicas that do not live where the policy wants them; none in a dry run."""
    if guards.dry_run:
        return ()
    lives = {(o.operator, lane.lane): lane.host for o in observation.scalable() for lane in o.lanes}
    return tuple(
        Move(home.operator, home.lane, lives.get((home.operator, home.lane), -1), home.host, home.reason)
        for home in proposal.homes
        if lives.get((home.operator, home.lane), -1) != home.host
    )
