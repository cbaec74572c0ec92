"""An observation of two operators that keep up with their source."""

from elastream.control import Observation
from elastream.testing import observation, operator, source


def calm(replicas: int = 2, least: int = 1, most: int = 8, slots: int = 100) -> Observation:
    a = operator("a", {"in": 10}, replicas=replicas, least=least, most=most)
    b = operator("b", {"a": 10}, replicas=replicas, least=least, most=most)
    return observation(source("in", 10), a, b, slots=slots)
