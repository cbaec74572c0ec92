"""From an entry of the journal to the sample of the fleet that a record keeps."""

from elastream.control.journal import JournalEntry
from elastream.report.scores.containers import FleetSample, LevelCount


def fleet_sample(t_s: float, entry: JournalEntry) -> FleetSample | None:
    """None without a fleet."""
    fleet = entry.observation.fleet
    if not fleet:
        return None
    levels = {s.level.value: LevelCount(s.planned, s.asked, s.there, s.start_s, s.measured, s.problem) for s in fleet}
    return FleetSample(t_s, levels, entry.guards.prices.per_hour({state.level: state.there for state in fleet}))
