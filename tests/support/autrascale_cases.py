"""What tests of AuTraScale share: the goal of the paper, spaces of replicas, and a line of operators."""

from hypothesis import strategies as st

from elastream.control import Observation
from elastream.policies.autrascale.score import Goal
from elastream.testing import observation, operator, source

GOAL = Goal(0.3)
SPACES = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30)), min_size=1, max_size=6)


def line(*service_ms: float, per_s: int = 100, replicas: int = 1, most: int = 40) -> Observation:
    parts = [source("in", per_s)]
    for number, each_ms in enumerate(service_ms):
        before = parts[-1].operator
        parts.append(
            operator(f"O{number}", {before: per_s}, service_ms=each_ms, replicas=replicas, most=most, processed=per_s)
        )
    return observation(*parts)
