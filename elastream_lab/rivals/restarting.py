"""A plant whose system restarts to change its size, as the systems do that the papers compare with."""

from elastream.control import Decision, LevelDecision, Move, Observation, Plant
from elastream.errors import SettingError

RESTART_S = 4.6
"""Storm 2.8 took 4.4 and 4.9 s to rebalance the workload of docs/benchmarks.md."""


def checked_restart(policy: str, restart_s: float) -> float:
    if not 0 <= restart_s < float("inf"):
        raise SettingError(f"policy {policy!r}: restart_s must be 0 or more, got {restart_s:g}")
    return restart_s


class RestartingPlant:
    """Serves nothing for `restart_s` after every change of sizes. What waits then is lost, if it `loses` tuples."""

    def __init__(self, plant: Plant, restart_s: float, *, loses: bool) -> None:
        self._plant = plant
        self._restart_s = restart_s
        self._loses = loses

    def observe(self) -> Observation:
        return self._plant.observe()

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        self._plant.apply(decisions)
        if self._loses:
            self._plant.discard()
        return self._plant.pause(self._restart_s)

    def pause(self, seconds: float) -> float:
        return self._plant.pause(seconds)

    def discard(self) -> None:
        self._plant.discard()

    def place(self, moves: tuple[Move, ...]) -> None:
        self._plant.place(moves)

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        self._plant.set_levels(decisions)
