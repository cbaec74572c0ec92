"""Plan: the guards look at what the policy wants; decisions leave, each with the policy's reason and the guards'."""

from elastream.control.guards import Guards, cooled_down, with_slack, within_limits, within_slots, within_step
from elastream.control.observation import Observation
from elastream.control.proposal import Decision, Move, Proposal


def plan(
    observation: Observation, proposal: Proposal, guards: Guards, rescaled_s: dict[str, float]
) -> tuple[Decision, ...]:
    """One decision for each want. `rescaled_s`: when each operator was rescaled last."""
    before: dict[str, int] = {operator.operator: operator.replicas for operator in observation.scalable()}
    sizes = dict(before)
    vetoes: dict[str, list[str]] = {}
    for want in proposal.wants:
        operator = observation.operators[want.operator]
        since_s = observation.ended_s - rescaled_s[want.operator] if want.operator in rescaled_s else None
        said = vetoes.setdefault(want.operator, [])
        size, why = within_limits(want.replicas, operator)
        _note(said, why)
        size, why = with_slack(guards, size, operator, want)
        _note(said, why)
        size, why = within_step(guards, size, operator)
        _note(said, why)
        size, why = cooled_down(guards, size, operator, since_s)
        _note(said, why)
        sizes[want.operator] = size
    slots, fitting = guards.slots, sizes
    if slots is not None:
        needing = [operator.operator for operator in observation.scalable() if not operator.waits]
        fitting = sizes | within_slots(slots, {n: sizes[n] for n in needing}, {n: before[n] for n in needing})
    decisions = []
    for want in proposal.wants:
        name, said = want.operator, vetoes[want.operator]
        after = fitting[name]
        if after != sizes[name]:
            said.append(f"slots: {slots} in all")
        if guards.dry_run and after != before[name]:
            said.append(f"dry run: would have become {after}")
            after = before[name]
        decisions.append(Decision(name, before[name], want.replicas, after, want.reason, tuple(said)))
    return tuple(decisions)


def plan_moves(observation: Observation, proposal: Proposal, guards: Guards) -> tuple[Move, ...]:
    """The replicas that do not live where the policy wants them; none in a dry run."""
    if guards.dry_run:
        return ()
    lives = {(o.operator, lane.lane): lane.host for o in observation.scalable() for lane in o.lanes}
    return tuple(
        Move(home.operator, home.lane, lives.get((home.operator, home.lane), -1), home.host, home.reason)
        for home in proposal.homes
        if lives.get((home.operator, home.lane), -1) != home.host
    )


def _note(said: list[str], why: str | None) -> None:
    if why:
        said.append(why)
