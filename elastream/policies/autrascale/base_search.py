"""The search for the throughput-optimal base (section III-C): recommend, run, look, until a recommendation comes again."""

from dataclasses import dataclass

from elastream.policies.autrascale.models import Sizes

MOST = 8
"""Configurations that are run at most."""
AS_MUCH = 0.98
"""A throughput of at least this part of the largest is as large."""


@dataclass(frozen=True)
class Ran:
    """Sizes that were run, and what came of it."""

    sizes: Sizes
    per_second: float
    keeps_up: bool


class BaseSearch:
    """Goes from one recommendation to the next. Stops at the first that was made before: the rates say nothing new."""

    def __init__(self, recommended: Sizes) -> None:
        self._recommended = [recommended]
        self._ran: list[Ran] = []

    def next(self, ran: Ran, recommended: Sizes) -> Sizes | None:
        """The sizes to run now; None when the search is over."""
        self._ran.append(ran)
        if recommended == ran.sizes or recommended in self._recommended or len(self._ran) >= MOST:
            return None
        self._recommended.append(recommended)
        return recommended

    @property
    def runs(self) -> int:
        return len(self._ran)

    def base(self) -> Sizes:
        """The smallest sizes that kept up; when none did, the smallest of those with the largest throughput."""
        kept_up = [ran for ran in self._ran if ran.keeps_up]
        largest = max(ran.per_second for ran in self._ran)
        chosen = kept_up or [ran for ran in self._ran if ran.per_second >= AS_MUCH * largest]
        return min(chosen, key=lambda ran: (sum(ran.sizes), -ran.per_second)).sizes
