"""The share of the graph's input that each operator gets, learned from what passed between operators."""

from collections.abc import Callable

from elastream.control import Observation, OperatorObservation


class Flow:
    """The share θ of the graph's input that reaches each operator (PSPS, equations 2b and 2c).

    Where an interval says nothing of an edge, because its sender processed nothing, the edge stays as it was known; one that
    was never seen passes everything on.
    """

    def __init__(self) -> None:
        self._share: dict[tuple[str, str], float] = {}
        self._source: dict[str, float] = {}

    def thetas(self, observation: Observation) -> dict[str, float]:
        """θ of every operator, sources included, from the first to the last."""
        thetas: dict[str, float] = {}
        for name, operator in observation.operators.items():
            if operator.role == "source":
                thetas[name] = self._of_source(operator, observation)
            else:
                thetas[name] = sum(
                    self.share(observation, before, name) * thetas.get(before, 0.0) for before in operator.received_from
                )
        return thetas

    def share(self, observation: Observation, before: str, name: str) -> float:
        """θ of an edge: tuples received by `name` for each one processed by `before`."""
        processed = observation.operators[before].processed
        if processed:
            self._share[before, name] = observation.operators[name].received_from[before] / processed
        return self._share.get((before, name), 1.0)

    def waiting(
        self,
        observation: Observation,
        queued: Callable[[OperatorObservation], float] = lambda operator: operator.queued,
    ) -> dict[str, float]:
        """Tuples that wait for each operator, and those before it that will come of what waits there; sources included.

        `queued` says which of an operator's own count; all, unless it is given.
        """
        waiting: dict[str, float] = {}
        for name, operator in observation.operators.items():
            before = (self.share(observation, p, name) * waiting.get(p, 0.0) for p in operator.received_from)
            waiting[name] = queued(operator) + sum(before)
        return waiting

    def _of_source(self, source: OperatorObservation, observation: Observation) -> float:
        if observation.input:
            self._source[source.operator] = source.processed / observation.input
        return self._source.get(source.operator, 1.0)
