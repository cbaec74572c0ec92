"""Samples for the record of a run, taken from observations and journal entries: load, health and containers."""

from elastream.control import JournalEntry, Observation
from elastream.control.health import health, sick
from elastream.control.load import LevelLoad, load_of
from elastream.report.scores.balance import LevelSample, LoadSample, level_sample
from elastream.report.scores.congestion import HealthSample
from elastream.report.scores.containers import FleetSample, LevelCount


def load_sample(t_s: float, observation: Observation) -> LoadSample | None:
    """The load of replicas, hosts and machines; None while nothing is known."""
    load = load_of(observation)
    lanes = _level(load.lanes)
    return LoadSample(t_s, lanes, _level(load.hosts), _level(load.machines)) if lanes else None


def health_sample(t_s: float, observation: Observation) -> HealthSample:
    """The health of the worst of the congested instances."""
    return HealthSample(t_s, min((health(lane) for _, lane in sick(observation)), default=1.0))


def fleet_sample(t_s: float, entry: JournalEntry) -> FleetSample | None:
    """Containers that are planned, asked for and there, and their price; None without a fleet."""
    fleet = entry.observation.fleet
    if not fleet:
        return None
    levels = {s.level.value: LevelCount(s.planned, s.asked, s.there, s.start_s, s.measured, s.problem) for s in fleet}
    return FleetSample(t_s, levels, entry.guards.prices.per_hour({state.level: state.there for state in fleet}))


def _level(load: LevelLoad) -> LevelSample | None:
    return level_sample(load.ratios) if load.ratios else None
