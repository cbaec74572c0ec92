"""The control loop's words. Measurements enter; observations leave."""

from elastream.control.observation import Observation, OperatorObservation, ReplicaObservation

__all__ = ["Observation", "OperatorObservation", "ReplicaObservation"]
