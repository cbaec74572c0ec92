"""The second stage of a tick: which key groups change hands now, and which lanes and states are on their way."""

from collections.abc import Iterable
from typing import NamedTuple

from elastream.control import Move
from elastream.engine.driver.commit.committer import Committed
from elastream.engine.driver.dispatch.works import Moment
from elastream.engine.driver.placement.group_mover import GroupMover, NewOwners
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.redirector import Redirector
from elastream.engine.driver.placement.spreader import LaneSpreader
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.lanes.segments import LaneId


class Moves(NamedTuple):
    """Key groups that change their place in this tick."""

    owners: NewOwners
    """Key groups that change hands."""
    rerouted: bool
    """True if senders must be told."""


class Placer:
    """In the driver's thread only."""

    def __init__(
        self, homes: LaneHomes, keeper: StateKeeper, redirector: Redirector, mover: GroupMover, spreader: LaneSpreader
    ) -> None:
        self._homes = homes
        self._keeper = keeper
        self._redirector = redirector
        self._mover = mover
        self._spreader = spreader

    def place(self, committed: Committed, moment: Moment) -> Moves:
        """Follow new sizes, uneven load, and hosts that joined or leave."""
        self._redirector.hear(committed.result)
        split = moment.running and self._redirector.step(moment.now, moment.wall_s)
        for operator in committed.resized:
            self._mover.follow(operator, moment.now, moment.wall_s)
        if self._keeper and moment.running:
            self._spreader.step()
            self._keeper.look(moment.now)
        owners = self._mover.step(moment.now)
        return Moves(owners, bool(committed.resized or owners or split))

    def applied(self, now: float) -> None:
        """The key groups have changed hands."""
        self._mover.applied(now)

    def pin(self, moves: Iterable[Move]) -> None:
        """Lanes live in these hosts from now on; stateful ones follow one after another."""
        for move in moves:
            self._homes.pin(LaneId(move.operator, move.lane), move.after)
