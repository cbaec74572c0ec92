"""Remarks on an interval of the control loop, in words: errors, changes, vetoes, alerts, containers, redirections, moves."""

from collections.abc import Iterator

from elastream.control import JournalEntry
from elastream.control.refusals import Refusals

MOST_MOVES = 4
"""Moves that a remark names."""

Remark = tuple[str, str]
"""Its kind (error, warning, rescale, veto, alert, fleet, redirect or move), and the words."""


def remarks(entry: JournalEntry, refusals: Refusals) -> Iterator[Remark]:
    """All remarks on an interval; `refusals` knows which vetoes were told before."""
    if entry.error:
        yield "error", entry.error
    if entry.warning:
        yield "warning", entry.warning
    for decision in entry.decisions:
        said = f"{decision.operator}: {decision.before} -> {decision.after}  {decision.words}"
        if decision.rescales:
            yield "rescale", said
        elif refusals.is_new(decision):
            yield "veto", f"{said}; {decision.asked} wanted"
    yield from other_remarks(entry)


def other_remarks(entry: JournalEntry) -> Iterator[Remark]:
    """Alerts, containers, redirections and moves of an interval. Many moves for one reason are told together."""
    for alert in entry.proposal.alerts if entry.proposal else ():
        yield "alert", alert
    for level in entry.levels:
        if level.asked != level.before or level.changes:
            said = f"{level.level.value}s: {level.before} -> {level.after}  {level.words}"
            yield "fleet" if level.changes else "veto", said
    for state in entry.observation.fleet:
        if state.problem:
            yield "fleet", f"{state.level.value}s: {state.problem}"
    for redirected in entry.observation.redirections:
        yield "redirect", f"{redirected.operator}: {redirected.reason}"
    by_reason: dict[str, list[str]] = {}
    for move in entry.moves:
        by_reason.setdefault(move.reason, []).append(f"{move.operator} {move.lane}: {move.before} -> {move.after}")
    for reason, moves in by_reason.items():
        more = f" and {len(moves) - MOST_MOVES} more" if len(moves) > MOST_MOVES else ""
        yield "move", f"{', '.join(moves[:MOST_MOVES])}{more}  {reason}"
