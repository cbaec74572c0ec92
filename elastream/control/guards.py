"""Guards dispose: what a policy may not do, each with the reason it gives. Pure functions of a want."""

from dataclasses import dataclass

from elastream.control.observation import OperatorObservation
from elastream.control.proposal import Want
from elastream.errors import SettingError


@dataclass(frozen=True)
class Guards:
    """Limits on what any policy may do. Every operator's own (min, max) always holds."""

    slots: int | None = None
    """The most replicas of all operators that do not wait, together; None: as many as tasks can run at once."""

    cooldown_s: float = 0.0
    """An operator that was rescaled stays as it is for this long."""

    largest_step: int | None = None
    """The most replicas that are added to or taken from an operator at once; None: any number."""

    slack: float = 0.1
    """Before an operator shrinks, its need must be this share below the smaller size: no to and fro on a constant rate."""

    dry_run: bool = False
    """Only advise: decisions are written down, none is carried out."""

    def __post_init__(self) -> None:
        if self.slots is not None and self.slots < 1:
            raise SettingError(f"guards: slots must be 1 or more, got {self.slots}; None means as many as there are")
        if not 0 <= self.cooldown_s < float("inf"):
            raise SettingError(f"guards: cooldown_s must be 0 or more, got {self.cooldown_s}")
        if self.largest_step is not None and self.largest_step < 1:
            raise SettingError(f"guards: largest_step must be 1 or more, got {self.largest_step}; None means any")
        if not 0 <= self.slack < 1:
            raise SettingError(f"guards: slack must be from 0 to less than 1, got {self.slack}")


Verdict = tuple[int, str | None]
"""The size that is left of what was asked for, and why when it is another."""


def within_limits(size: int, operator: OperatorObservation) -> Verdict:
    allowed = min(max(size, operator.least), operator.most)
    return allowed, None if allowed == size else f"limits: {operator.least}..{operator.most} replicas"


def cooled_down(guards: Guards, size: int, operator: OperatorObservation, since_s: float | None) -> Verdict:
    """`since_s`: how long ago the operator was rescaled, if it was."""
    if size == operator.replicas or since_s is None or since_s >= guards.cooldown_s:
        return size, None
    return operator.replicas, f"cooldown: rescaled {since_s:.1f} s ago, stays for {guards.cooldown_s:g} s"


def within_step(guards: Guards, size: int, operator: OperatorObservation) -> Verdict:
    if guards.largest_step is None or abs(size - operator.replicas) <= guards.largest_step:
        return size, None
    step = guards.largest_step if size > operator.replicas else -guards.largest_step
    return operator.replicas + step, f"largest step: {guards.largest_step} at once"


def with_slack(guards: Guards, size: int, operator: OperatorObservation, want: Want) -> Verdict:
    """Shrink only so far that the need stays below the new size by the slack."""
    if size >= operator.replicas or want.need is None or not guards.slack:
        return size, None
    roomy = size
    while roomy < operator.replicas and want.need > roomy * (1 - guards.slack):
        roomy += 1
    return roomy, None if roomy == size else f"slack: a need of {want.need:.2f} is too close to {size}"


def within_slots(slots: int, sizes: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """When all together are too many, share out what is free among those that grow, none more than it asked for.

    What runs already is not taken away.
    """
    free = slots - sum(min(size, before[name]) for name, size in sizes.items())
    growing = sorted((size - before[name], name) for name, size in sizes.items() if size > before[name])
    granted: dict[str, int] = {}
    for position, (asked, name) in enumerate(growing):
        # The smallest first: what it does not need is left for the larger ones.
        granted[name] = min(asked, max(0, free) // (len(growing) - position))
        free -= granted[name]
    return sizes | {name: before[name] + extra for name, extra in granted.items()}
