"""Guards by time: windows of the day, a budget of disruption, and the dry run."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from elastream.control.guard import Draft, Subject, Verdict
from elastream.errors import SettingError
from elastream.fleet import Level

LEVELS = frozenset(level.value for level in Level)


@dataclass(frozen=True)
class Window:
    """Between two times of the day, an operator or a level has at least and at most so many."""

    of: str
    """A level (seat, host, executor) or the name of an operator."""
    begins: str
    """Such as 08:00."""
    ends: str
    """Not included; earlier than the beginning: on the next day."""
    least: int = 1
    most: int | None = None
    zone: str = "UTC"

    def __post_init__(self) -> None:
        for name in ("begins", "ends"):
            try:
                time.fromisoformat(getattr(self, name))
            except ValueError:
                raise SettingError(
                    f"guards: window of {self.of!r}: {name} must be a time such as 08:00, got {getattr(self, name)!r}"
                ) from None
        if self.least < 1 or (self.most is not None and self.most < self.least):
            raise SettingError(
                f"guards: window of {self.of!r}: needs 1 <= least <= most, got {self.least} and {self.most}"
            )
        _zone(self.zone)

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        of: Subject = Level(self.of) if self.of in LEVELS else self.of
        if of not in draft.after or not self.holds(draft.observation.ended_s):
            return
        size = draft.after[of]
        allowed = max(size, self.least) if self.most is None else min(max(size, self.least), self.most)
        if allowed != size:
            bounds = f"{self.least} or more" if self.most is None else f"{self.least}..{self.most}"
            yield Verdict(of, allowed, f"window {self.begins}-{self.ends}: {bounds}")

    def holds(self, at_s: float) -> bool:
        """True inside the window."""
        now = datetime.fromtimestamp(at_s, _zone(self.zone)).time()
        begins, ends = time.fromisoformat(self.begins), time.fromisoformat(self.ends)
        return begins <= now < ends if begins <= ends else now >= begins or now < ends


@dataclass(frozen=True)
class Disruptions:
    """No more than so many changes, of operators and levels together, in so much time; growing goes before shrinking."""

    most: int
    in_s: float

    def __post_init__(self) -> None:
        if self.most < 0 or not 0 < self.in_s < float("inf"):
            raise SettingError(f"guards: disruptions need most >= 0 and in_s > 0, got {self.most} and {self.in_s}")

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        since_s = draft.observation.ended_s - self.in_s
        made = sum(at_s > since_s for at_s in draft.history.changed_s)
        wanted = sorted(draft.changed, key=lambda subject: not draft.grows(subject))
        for subject in wanted[max(0, self.most - made) :]:
            yield Verdict(
                subject,
                draft.before[subject],
                f"disruptions: {made} in the last {self.in_s:g} s, {self.most} are allowed",
            )


@dataclass(frozen=True)
class DryRun:
    """Nothing is changed."""

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        for subject in draft.changed:
            yield Verdict(subject, draft.before[subject], f"dry run: would have become {draft.after[subject]}")


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise SettingError(f"guards: no time zone {name!r}; names are such as Europe/Berlin, or UTC") from None
