"""DS2: three steps is all you need (Kalavri and others, OSDI 2018), its one-step model of true rates.

An operator's true rate is what a replica serves in a second of useful time; its target is what its predecessors would give
it if every one of them kept up. What is queued does not count.
"""

from elastream.control import Observation, Policy, Proposal, Want
from elastream.policies.flow import Flow
from elastream.policies.psps import whole


class Ds2(Policy):
    """From the sources on: target rate over true rate, rounded up."""

    name = "ds2"

    def __init__(self) -> None:
        self._flow = Flow()

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        thetas = self._flow.thetas(observation)
        source_per_s = observation.input / observation.seconds
        wants = []
        for operator in observation.scalable():
            if not operator.service_seconds:
                continue
            target_per_s = source_per_s * thetas[operator.operator]
            true_per_s = 1.0 / operator.service_seconds
            need = target_per_s / true_per_s
            reason = f"{target_per_s:.4g}/s to serve, a replica serves {true_per_s:.4g}/s"
            wants.append(Want(operator.operator, max(1, whole(need)), reason, need))
        return Proposal(tuple(wants))
