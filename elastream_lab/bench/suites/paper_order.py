"""Whether the rows of a table are in the order of the paper's: pairs of rows, column by column."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from elastream_lab.bench.suites.outcomes import COLUMNS, Outcome

TIE = 0.01
"""Two of the paper's figures that differ by less than this part of the larger one are in no order."""


def pairs_alike(outcomes: Sequence[Outcome], paper: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[int, int]]:
    """Per column, how many pairs of rows are ordered as in the paper, of how many that are in an order there."""
    told = [outcome for outcome in outcomes if paper.get(outcome.label)]
    found: dict[str, tuple[int, int]] = {}
    for one, other in combinations(told, 2):
        theirs, others = paper[one.label], paper[other.label]
        for name in (name for name in theirs if name in others):
            a, b = theirs[name], others[name]
            if abs(a - b) <= TIE * max(abs(a), abs(b)):
                continue
            ours, his = COLUMNS[name].of(one.report), COLUMNS[name].of(other.report)
            alike, of = found.get(name, (0, 0))
            agrees = ours is not None and his is not None and (ours - his) * (a - b) > 0
            found[name] = (alike + agrees, of + 1)
    return found


def order_line(outcomes: Sequence[Outcome], paper: Mapping[str, Mapping[str, float]]) -> str:
    """The same in words; empty where no paper has two rows."""
    found = pairs_alike(outcomes, paper)
    if not found:
        return ""
    said = ", ".join(f"{name} {alike} of {of}" for name, (alike, of) in found.items())
    return f"Pairs of rows in the paper's order: {said}."
