"""An observation as this policy sees it: sizes in a tuple, what arrives, what all queues hold, what comes out."""

from dataclasses import dataclass

from elastream.control import Observation
from elastream.policies.autrascale.models import Sizes
from elastream.policies.autrascale.settling import Interval
from elastream.policies.autrascale.true_rates import base_sizes, throughput_per_s
from elastream.policies.flow import Flow


@dataclass(frozen=True)
class Sight:
    """One interval."""

    observation: Observation
    operators: tuple[str, ...]
    sizes: Sizes
    least: Sizes
    most: Sizes
    interval: Interval
    throughput_per_s: float


class Eyes:
    """Keeps what an observation does not say by itself: shares of edges, and what sources had not read before."""

    def __init__(self) -> None:
        self._flow = Flow()
        self._unread: int | None = None

    def see(self, observation: Observation) -> Sight:
        """What arrives is what sources read, and by how much more is left unread than before."""
        operators = tuple(observation.scalable())
        unread = sum(o.queued for o in observation.operators.values() if o.role == "source")
        grown = 0 if self._unread is None else unread - self._unread
        self._unread = unread
        queued = unread + sum(operator.queued for operator in operators)
        arrived_per_s = max(0, observation.input + grown) / observation.seconds
        return Sight(
            observation,
            tuple(operator.operator for operator in operators),
            tuple(operator.replicas for operator in operators),
            tuple(operator.least for operator in operators),
            tuple(operator.most for operator in operators),
            Interval(
                float(observation.seconds),
                queued,
                float(arrived_per_s),
                observation.finished,
                float(observation.latency_mean_s),
            ),
            float(throughput_per_s(observation, self._flow.thetas(observation))),
        )

    def recommended(self, sight: Sight, per_second: float) -> Sizes:
        """Equation 3 for this rate."""
        return base_sizes(sight.observation, self._flow, per_second)
