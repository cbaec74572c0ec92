"""Static: the same number of replicas all the time, as Storm runs a topology that nobody rebalances."""

from elastream.control import Observation, Policy, Proposal, Want
from elastream.errors import SettingError


class Static(Policy):
    """`replicas` for every operator; its own limits still hold."""

    def __init__(self, replicas: int = 1) -> None:
        if replicas < 1:
            raise SettingError(f"policy 'static': replicas must be 1 or more, got {replicas}")
        self._replicas = replicas
        self.start = replicas
        self.name = f"static:replicas={replicas}"

    def propose(self, observation: Observation) -> Proposal:
        wants = (Want(o.operator, self._replicas, f"always {self._replicas}") for o in observation.scalable())
        return Proposal(tuple(wants))
