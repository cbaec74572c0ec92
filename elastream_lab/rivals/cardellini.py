"""Cardellini: the hierarchical control of Cardellini and others (Towards hierarchical autonomous control, Euro-Par 2017).

Below there is a controller per operator. Every interval it asks for a replica more when utilisation is above a threshold, or for one
less when the others would stay well below it, each time with a score. Above there is one per application, on a longer time
scale: it grants the requests with the best scores within a budget of reconfigurations, and refuses to shrink while the latency
target is missed. Storm carries a reconfiguration out by a restart that keeps what is queued: everything pauses.
"""

from dataclasses import dataclass

from elastream.control import Observation, OperatorObservation, Plant, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream_lab.rivals.restarting import RESTART_S, RestartingPlant, checked_restart


@dataclass(frozen=True)
class Request:
    """Of the controller of one operator."""

    operator: OperatorObservation
    step: int
    score: float
    """Above 1 for a replica more, up to 1 for one less: whoever is overloaded comes first."""
    reason: str


class Cardellini(Policy):
    """Requests from below, grants from above."""

    name = "cardellini"
    targets = ("latency_s",)

    def __init__(
        self,
        high: float = 0.7,
        margin: float = 0.75,
        latency_s: float = 1.0,
        every: int = 3,
        budget: int = 2,
        restart_s: float = RESTART_S,
    ) -> None:
        if not (0 < high <= 1 and 0 < margin < 1):
            raise SettingError(
                f"policy 'cardellini': high must be above 0 up to 1 and margin between 0 and 1, got {high} and {margin}"
            )
        if not latency_s > 0:
            raise SettingError(f"policy 'cardellini': latency_s must be more than 0, got {latency_s}")
        if every < 1 or budget < 1:
            raise SettingError(f"policy 'cardellini': every and budget from 1, got {every} and {budget}")
        self._high, self._margin, self._latency_s = high, margin, latency_s
        self._every, self._budget = every, budget
        self._intervals = 0
        self._restart_s = checked_restart(self.name, restart_s)

    def wrap(self, plant: Plant) -> Plant:
        return RestartingPlant(plant, self._restart_s, loses=False)

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        self._intervals += 1
        requests: dict[str, Request] = {}
        wants = []
        for operator in observation.scalable():
            used = operator.busy_seconds / (operator.replicas * observation.seconds)
            request = self._request(operator, used)
            if request is None:
                wants.append(Want(operator.operator, operator.replicas, f"utilisation {used:.2f}: asks for nothing"))
            else:
                requests[operator.operator] = request
        wants += self._answers(requests, observation)
        return Proposal(tuple(wants))

    def _request(self, operator: OperatorObservation, used: float) -> Request | None:
        """The lower level."""
        if used > self._high:
            reason = f"utilisation {used:.2f} above {self._high:g}"
            return Request(operator, 1, used / self._high, reason)
        if operator.replicas <= operator.least:
            return None
        left, limit = used * operator.replicas / (operator.replicas - 1), self._margin * self._high
        if left < limit:
            reason = f"with one less utilisation would be {left:.2f}, below {limit:.3g}"
            return Request(operator, -1, 1 - left / limit, reason)
        return None

    def _answers(self, requests: dict[str, Request], observation: Observation) -> list[Want]:
        """The upper level: every request is granted or refused, with the reason."""
        left = self._budget if self._intervals % self._every == 0 else 0
        late = observation.latency_mean_s > self._latency_s
        wants = []
        for request in sorted(requests.values(), key=lambda request: (-request.score, request.operator.operator)):
            operator, said = request.operator, f"{request.reason}, score {request.score:.2f}: "
            grown = operator.replicas + request.step
            refused = ""
            if self._intervals % self._every:
                refused = f"waits for the application's turn, every {self._every} intervals"
            elif request.step < 0 and late:
                refused = f"refused, latency {observation.latency_mean_s:.2f} s misses {self._latency_s:g} s"
            elif grown > operator.most:
                refused = f"refused, {operator.most} replicas are all there are"
            elif not left:
                refused = f"refused, the budget of {self._budget} is spent"
            else:
                left -= 1
            wants.append(
                Want(operator.operator, operator.replicas if refused else grown, said + (refused or "granted"))
            )
        return wants
