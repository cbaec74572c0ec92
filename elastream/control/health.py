"""The health of instances (multi-level elasticity): the share of the tuples received that was processed."""

from collections.abc import Iterator

from elastream.control.observation import Observation, OperatorObservation, ReplicaObservation

MIN_HEALTH = 0.9

LEAST_BEHIND = 0.02
"""What an instance fell behind by must take it this part of the interval: a few tuples that came at its end are no congestion."""


def health(lane: ReplicaObservation) -> float:
    """Of one instance; 1 when it received nothing."""
    return lane.processed / lane.received if lane.received else 1.0


def sick(
    observation: Observation, least: float = MIN_HEALTH
) -> Iterator[tuple[OperatorObservation, ReplicaObservation]]:
    """The congested instances, operators in topological order."""
    for operator in observation.scalable():
        for lane in operator.lanes:
            behind_s = (lane.received - lane.processed) * operator.service_seconds
            if lane.active and health(lane) < least and behind_s > LEAST_BEHIND * observation.seconds:
                yield operator, lane
