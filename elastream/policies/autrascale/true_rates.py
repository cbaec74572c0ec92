"""True rates (equation 2), and the smallest sizes that would serve a rate if every replica more served as much (equation 3)."""

from collections.abc import Mapping

from elastream.control import Observation, OperatorObservation
from elastream.policies.flow import Flow
from elastream.policies.psps import whole

RARELY = 1e-6
"""An operator that gets a smaller share of the input says nothing about the throughput."""


def true_per_s(operator: OperatorObservation) -> float:
    """Tuples over useful time, of all replicas together (equation 2); 0 while nobody has served one."""
    if operator.busy_seconds > 0 and operator.processed:
        return operator.processed / operator.busy_seconds
    return 1.0 / operator.service_seconds if operator.service_seconds else 0.0


def base_sizes(observation: Observation, flow: Flow, per_second: float) -> tuple[int, ...]:
    """Sizes that serve `per_second` tuples of input (equation 3); an operator that nobody has timed stays as it is.

    What reaches an operator is what its predecessors can pass on at their new sizes, but no more than they get. As printed,
    the equation leaves the second half out, and sizes everything behind a fast operator for what that one could serve.
    """
    passes: dict[str, float] = {}
    sizes: list[int] = []
    thetas = flow.thetas(observation)
    for name, operator in observation.operators.items():
        if operator.role == "source":
            passes[name] = per_second * thetas[name]
            continue
        arrives = sum(flow.share(observation, before, name) * passes[before] for before in operator.received_from)
        passes[name] = arrives
        if operator.role != "operator":
            continue
        size, rate = operator.replicas, true_per_s(operator)
        if rate:
            size = min(max(operator.least, whole(arrives / rate), 1), operator.most)
            passes[name] = min(arrives, size * rate)
        sizes.append(size)
    return tuple(sizes)


def throughput_per_s(observation: Observation, thetas: Mapping[str, float]) -> float:
    """How much of the input the slowest operator served, in tuples of the input."""
    served = [
        operator.processed / (thetas[operator.operator] * observation.seconds)
        for operator in observation.scalable()
        if thetas[operator.operator] > RARELY
    ]
    return min(served, default=0.0)
