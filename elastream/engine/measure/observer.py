"""The observer of a run: adds up ticks, makes observations, tells listeners, and lets the control loop take its step."""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from elastream.control import ControlLoop, Observation, Redirected, StateMoved
from elastream.control.listeners import Listeners
from elastream.engine.clock import Clock
from elastream.engine.measure.totals import Measurements, Scene
from elastream.engine.tick.lane_loads import LaneLoads
from elastream.engine.tick.ports import Tick
from elastream.topology import Graph

log = logging.getLogger("elastream.measure")


class SceneMaker(Protocol):
    def __call__(self) -> Scene: ...


class RunObserver:
    """`add` and `step` are called in the tick's thread; observations may be asked for in any."""

    def __init__(self, graph: Graph, loads: LaneLoads, interval_s: float, clock: Clock, scene: SceneMaker) -> None:
        self._measurements = Measurements(graph)
        self._loads = loads
        self._interval_s = interval_s
        self._clock = clock
        self._scene = scene
        self._lock = threading.Lock()
        self._learned_s = clock.now()
        self.listeners: Listeners[Tick] = Listeners("ticks", log)
        self.control: ControlLoop | None = None
        self.state_moves: Callable[[], Iterable[StateMoved]] = list
        """Receipts of states that moved, the newest last."""
        self.redirections: Callable[[], Iterable[Redirected]] = list
        """Of a run, the newest last."""
        self._told = 0
        self._redirected_s = 0.0

    def add(self, tick: Tick) -> None:
        with self._lock:
            self._measurements.add(tick)
        self._loads.add(tick.result)
        self.listeners.tell(tick)

    def step(self, now: float) -> None:
        if self.control is not None:
            self.control.step()
        elif now - self._learned_s >= self._interval_s and self._loads:
            # Nobody decides, but routing by load wants to know how it was.
            self.end_interval()

    def over(self, seconds: float) -> Observation:
        with self._lock:
            return self._measurements.over(seconds, self._scene(), self._clock.wall_s())

    def end_interval(self) -> Observation:
        """Everything since the last time this was asked."""
        with self._lock:
            observation = self._measurements.interval(self._scene(), self._clock.wall_s())
        moves = tuple(moved for moved in self.state_moves() if moved.number > self._told)
        if moves:
            observation, self._told = replace(observation, state_moves=moves), moves[-1].number
        redirections = tuple(one for one in self.redirections() if one.at_s > self._redirected_s)
        if redirections:
            observation, self._redirected_s = replace(observation, redirections=redirections), redirections[-1].at_s
        self._learned_s = self._clock.now()
        self._loads.learn(observation)
        return observation
