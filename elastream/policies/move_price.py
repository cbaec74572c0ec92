"""The price of moving keys: how long moves took enters, when a keyed operator may give up idle replicas leaves.

A change of a keyed operator moves queued tuples and state. So idle replicas are kept until they have cost as much as the
move (the ski-rental rule: never more than twice the cost of who knows the future). A load that swings around a size would
pay for the move again and again. So each shrink that is taken back before it has paid for itself doubles the price of the
next one, and each that has paid halves it.
"""

from dataclasses import dataclass, field
from math import inf

MOVE_WORTH = 6.0
"""Rescales of an operator without keys that a move is worth at least."""
MOST_DOUBLED = 6
"""Times that the price is doubled at most: whoever is idle for long enough shrinks in any case."""
SETTLE = 3.0
"""Times as long as a move takes, until what waited for it is served."""
NEWEST = 0.5
"""The weight of the newest move in the time that a move takes."""


@dataclass
class MovePrice:
    """Of one operator. Prices are in replica seconds."""

    move_s: float = 0.0
    """How long a change takes until all keys are where they belong."""
    peaks: list[tuple[float, int]] = field(default_factory=list)
    """Since the last change: a moment, and the most replicas that any look took from then on. The oldest has the most."""
    doubled: int = 0
    changed_s: float = -inf
    saved: int = 0
    """Replicas that the last change gave up."""
    paid_s: float = 0.0
    """The price at which it did."""

    def took(self, seconds: float) -> None:
        """A change is over."""
        self.move_s = seconds if not self.move_s else self.move_s + NEWEST * (seconds - self.move_s)

    def settles(self, now_s: float) -> bool:
        """True while a change is under way, or what waited for it is not served."""
        return now_s - self.changed_s < SETTLE * self.move_s

    def price_s(self, replicas: int, rescale_s: float) -> float:
        """Idle replica seconds at which a shrink pays; `rescale_s` is what it would be worth without keys.

        All replicas are busy with a move at worst.
        """
        return max(MOVE_WORTH * rescale_s, replicas * self.move_s) * float(2**self.doubled)

    def look(self, replicas: int, taken: int, began_s: float) -> None:
        """Note that a look, which began then, took so many replicas."""
        while self.peaks and self.peaks[-1][1] <= taken:
            began_s = self.peaks.pop()[0]
        if taken >= replicas:
            self.peaks.clear()
        else:
            self.peaks.append((began_s, taken))

    def shrunk(self, replicas: int, price_s: float, now_s: float) -> int:
        """The size that all looks since some moment would have done with, if the others have cost the price since then."""
        return next(
            (taken for since_s, taken in self.peaks if (replicas - taken) * (now_s - since_s) >= price_s), replicas
        )

    def changes(self, before: int, after: int, price_s: float, now_s: float) -> None:
        """Note a change: a growth says whether the shrink before it was worth its price."""
        if after > before and self.saved:
            has_paid = self.saved * (now_s - self.changed_s) >= self.paid_s
            self.doubled = max(0, self.doubled - 1) if has_paid else min(MOST_DOUBLED, self.doubled + 1)
        self.saved, self.paid_s = max(0, before - after), price_s
        self.peaks.clear()
        self.changed_s = now_s
