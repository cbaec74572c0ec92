"""The way of a tuple through the graph: service times enter, the longest sum from a source to an end leaves."""

from elastream.control.observation import Observation


def way_s(observation: Observation) -> float:
    """The service times along the longest way, without any waiting: no tuple takes it in less."""
    until: dict[str, float] = {}
    for name, operator in observation.operators.items():
        before = max((until.get(source, 0.0) for source in operator.received_from), default=0.0)
        # What is chained to an operator is in its service time already.
        until[name] = before + (operator.service_seconds if operator.role == "operator" else 0.0)
    return max(until.values(), default=0.0)


def too_short(td_s: float, observation: Observation) -> str | None:
    """A warning if an interval is over before a tuple is through: its later operators are sized by an input of long ago."""
    way = way_s(observation)
    if way <= td_s:
        return None
    return (
        f"td_s {td_s:g} is shorter than a tuple's way through the graph, {way:.3g} s without any waiting: later operators are "
        f"sized before the tuples that entered come to them; set td_s to {way:.2g} or more"
    )
