"""The engine as a plant: what a control loop sees of a run, and how it changes it."""

from elastream.control import Decision, Observation
from elastream.engine.driver import Driver


class EnginePlant:
    """Called by the loop in the stream's thread, between two ticks."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def observe(self) -> Observation:
        return self._driver.end_interval()

    def apply(self, decisions: tuple[Decision, ...], restart: bool) -> None:
        for decision in decisions:
            self._driver.scale(decision.operator, decision.after)
        if restart:
            self._driver.request_restart()
