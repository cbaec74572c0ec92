"""Remarks on an interval besides its changes of replicas: alerts, containers, redirections and moves, in words."""

from elastream.control.journal import JournalEntry

MOST_MOVES = 4
"""Moves that a remark names."""


def other_remarks(entry: JournalEntry) -> list[tuple[str, str]]:
    """Containers, redirections and moves of an interval, in words; many moves for one reason are told together."""
    found = [("alert", said) for said in (entry.proposal.alerts if entry.proposal else ())]
    found += [
        (
            "fleet" if decision.changes else "veto",
            f"{decision.level.value}s: {decision.before} -> {decision.after}  {decision.words}",
        )
        for decision in entry.levels
        if decision.asked != decision.before or decision.changes
    ]
    found += [("fleet", f"{state.level.value}s: {state.problem}") for state in entry.observation.fleet if state.problem]
    found += [("redirect", f"{one.operator}: {one.reason}") for one in entry.observation.redirections]
    by_reason: dict[str, list[str]] = {}
    for move in entry.moves:
        by_reason.setdefault(move.reason, []).append(f"{move.operator} {move.lane}: {move.before} -> {move.after}")
    for reason, moves in by_reason.items():
        more = f" and {len(moves) - MOST_MOVES} more" if len(moves) > MOST_MOVES else ""
        found.append(("move", f"{', '.join(moves[:MOST_MOVES])}{more}  {reason}"))
    return found
