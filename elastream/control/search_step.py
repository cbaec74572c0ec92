"""One step of a policy that searches: the sizes that were measured, what had been expected, and the sizes that come next."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchStep:
    """Said with the proposal that follows a measurement; most intervals have none. Scores are as the policy defines them."""

    operators: tuple[str, ...]
    per_second: float
    """The input rate that sizes are sought for."""
    latency_ms: float
    """The target."""
    enough: float
    """The score at which the search stops, if the target is kept."""
    base: tuple[int, ...]
    """The smallest sizes that serve the rate."""
    base_runs: int
    """How many sizes were run to find them; 0: they were known."""
    number: int
    """How many sizes were measured so far."""
    sizes: tuple[int, ...]
    """Those that were measured now."""
    score: float
    measured_ms: float | None
    """Their latency; None where queues only grew."""
    expected: float | None
    """The score that a model expected of them; None where none was asked."""
    deviation: float | None
    best: tuple[int, ...]
    """The best sizes so far."""
    best_score: float
    best_ms: float | None
    next: tuple[int, ...]
    """The sizes that come now."""
    why: str
    over: bool = False
    """True when the search ends here."""
