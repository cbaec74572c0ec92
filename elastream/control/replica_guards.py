"""Guards of the replicas of operators: limits, slack, steps, cooldown, slots."""

from collections.abc import Iterator
from dataclasses import dataclass

from elastream.control.guard import Draft, Verdict


@dataclass(frozen=True)
class OwnLimits:
    """The least and the most that the user declared for each operator."""

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        for want in draft.proposal.wants:
            operator, size = draft.observation.operators[want.operator], draft.after[want.operator]
            allowed = min(max(size, operator.least), operator.most)
            if allowed != size:
                yield Verdict(want.operator, allowed, f"limits: {operator.least}..{operator.most} replicas")


@dataclass(frozen=True)
class Slack:
    """Shrink only so far that the need stays below the new size by this share."""

    share: float

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        for want in draft.proposal.wants:
            size, now = draft.after[want.operator], draft.before[want.operator]
            if size >= now or want.need is None:
                continue
            roomy = size
            while roomy < now and want.need > roomy * (1 - self.share):
                roomy += 1
            if roomy != size:
                yield Verdict(want.operator, roomy, f"slack: a need of {want.need:.2f} is too close to {size}")


@dataclass(frozen=True)
class LargestStep:
    """No more replicas than this are added to or taken from an operator at once."""

    most: int

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        for want in draft.proposal.wants:
            size, now = draft.after[want.operator], draft.before[want.operator]
            if abs(size - now) > self.most:
                step = self.most if size > now else -self.most
                yield Verdict(want.operator, now + step, f"largest step: {self.most} at once")


@dataclass(frozen=True)
class Cooldown:
    """An operator that was rescaled stays as it is for a while."""

    seconds: float

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        for want in draft.proposal.wants:
            now, last_s = draft.before[want.operator], draft.history.rescaled_s.get(want.operator)
            if draft.after[want.operator] == now or last_s is None:
                continue
            since_s = draft.observation.ended_s - last_s
            if since_s < self.seconds:
                yield Verdict(
                    want.operator, now, f"cooldown: rescaled {since_s:.1f} s ago, stays for {self.seconds:g} s"
                )


@dataclass(frozen=True)
class Slots:
    """When all together are too many, share out what is free among those that grow, none more than it asked for.

    Operators whose replicas wait need no slots. What runs already is not taken away.
    """

    slots: int

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        names = [operator.operator for operator in draft.observation.scalable() if not operator.waits]
        free = self.slots - sum(min(draft.after[name], draft.before[name]) for name in names)
        growing = sorted((draft.after[name] - draft.before[name], name) for name in names if draft.grows(name))
        for position, (asked, name) in enumerate(growing):
            # The smallest first: what it does not need is left for the larger ones.
            granted = min(asked, max(0, free) // (len(growing) - position))
            free -= granted
            if granted != asked:
                yield Verdict(name, draft.before[name] + granted, f"slots: {self.slots} in all")
