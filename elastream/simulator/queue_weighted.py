"""The grouping of a simulated Storm with which the authors of PSPS measured: replicas drawn by how empty their queues are."""

from dataclasses import dataclass

from elastream.routing import Grouping, SimulatedAs


@dataclass(frozen=True)
class QueueWeighted(Grouping):
    """Replicas drawn at random by how empty their queues were within the last second, as the authors of PSPS published it."""

    name = "queue_weighted"
    simulated_as = SimulatedAs.DRAWN
    simulated_only = True
