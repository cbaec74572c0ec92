"""Requests of other threads, carried out by the driver."""

from elastream.control.containers import set_levels
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.pace import TickPace
from elastream.engine.driver.placement.placer import Placer
from elastream.engine.driver.requests import Discard, Pause, PlaceLanes, Request, SetLevel, SetLevels, StopReading
from elastream.fleet.engine_fleet import EngineFleet


class RequestHandler:
    """Carries requests out. In the driver's thread only."""

    def __init__(self, works: WorkTable, replays: Replays, placer: Placer, fleet: EngineFleet, pace: TickPace) -> None:
        self._works = works
        self._replays = replays
        self._placer = placer
        self._fleet = fleet
        self._pace = pace

    def carry_out(self, request: Request) -> None:
        match request:
            case SetLevel(level, count):
                self._fleet.set(level, count)
            case SetLevels(decisions):
                set_levels(self._fleet, decisions)
            case PlaceLanes(moves):
                self._placer.pin(moves)
            case Discard(operators):
                self._works.discard(operators)
            case Pause(seconds):
                self._pace.pause(seconds)
            case StopReading():
                self._replays.stop()
