"""One table of key groups: who owns each, where its state is, where it shall be, and how far a move of it is.

The *owner* of a group is the lane that serves it; the ledger says which. The *primary* is the host in which its state is
current: works change it there, and their receipts name what changed. Other hosts may have *copies* as of some change; they learn
the rest from the ledger's log. The *target* is the lane that shall own it. A *move* takes some groups of one lane to another
host, in phases:

    SETTLED -> COPYING -> FREEZING -> COMPARING -> SETTLED (with the new primary)

COPYING: the new host learns the state while the lane is served. FREEZING: the lane gets no more works, and the last one ends.
COMPARING: the new host learns the last changes, and both hosts say what they have. If they agree, the group changes hands.
A move may end in every phase, because a host is lost or the sizes have changed; then its groups are SETTLED where they were.

A host is known by its incarnation: another process under the same number has nothing of what the one before it had.
"""

from dataclasses import dataclass, field
from enum import Enum

from elastream.engine.driver.placement.hosts import HostId
from elastream.engine.driver.placement.state_tasks import StateTask
from elastream.engine.messages import GroupFacts
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.routing.key_groups import Owners
from elastream.topology import Graph
from elastream.topology.groupings import KEY_GROUPS


class GroupPhase(Enum):
    """Phases of a key group."""

    SETTLED = "settled"
    COPYING = "copying"
    FREEZING = "freezing"
    COMPARING = "comparing"


TRANSITIONS: dict[GroupPhase, frozenset[GroupPhase]] = {
    GroupPhase.SETTLED: frozenset({GroupPhase.COPYING}),
    GroupPhase.COPYING: frozenset({GroupPhase.FREEZING, GroupPhase.SETTLED}),
    GroupPhase.FREEZING: frozenset({GroupPhase.COMPARING, GroupPhase.SETTLED}),
    GroupPhase.COMPARING: frozenset({GroupPhase.SETTLED}),
}

FROZEN = (GroupPhase.FREEZING, GroupPhase.COMPARING)
"""Phases in which the lane of a group gets no work."""


@dataclass
class GroupMove:
    """Some groups of one lane on their way to another host: to a lane that lives there, or with the lane itself."""

    operator: str
    groups: tuple[int, ...]
    giver: LaneId
    taker: LaneId
    from_host: HostId
    to_host: HostId
    phase: GroupPhase = GroupPhase.SETTLED
    to_ask: list[StateTask] = field(default_factory=list)
    """Tasks that were not asked for yet, because the same is being done for somebody else."""
    open: list[StateTask] = field(default_factory=list)
    """Tasks that are asked for and not done."""
    before: dict[int, GroupFacts] = field(default_factory=dict)
    """Facts about the groups in the old host."""
    after: dict[int, GroupFacts] = field(default_factory=dict)
    """Facts about the groups in the new host."""
    frozen_s: float = 0.0
    waited_s: float = 0.0
    """How long the lane got no works."""

    @property
    def moves_lane(self) -> bool:
        """True if the lane itself changes its home, with all of its groups."""
        return self.giver == self.taker

    @property
    def agreed(self) -> bool:
        """True if both hosts have the same."""
        return self.before == self.after


@dataclass
class GroupPlace:
    """One key group."""

    primary: HostId | None = None
    """The host in which its state is current; None: it must be restored from the log before it is served."""
    copies: dict[HostId, int] = field(default_factory=dict)
    """Hosts that know it up to a change, by the number of the first that they do not know."""
    target: int | None = None
    """The lane that shall own it; None: the one that does."""
    move: GroupMove | None = None

    @property
    def phase(self) -> GroupPhase:
        return self.move.phase if self.move is not None else GroupPhase.SETTLED


class GroupTable:
    """The key groups of all operators that are reached by keys. In the driver's thread only."""

    def __init__(self, graph: Graph, state: LedgerState) -> None:
        self._state = state
        self.stateful = frozenset(o.name for o in graph.operators if o.keyed is not None)
        """Operators with state per key."""
        self._places: dict[str, list[GroupPlace]] = {
            name: [GroupPlace() for _ in range(KEY_GROUPS)] for name in {*graph.reached_by_keys, *self.stateful}
        }
        self._targeted: dict[str, None] = {}
        """Operators of which some groups have a target."""
        self._moves: list[GroupMove] = []

    def __call__(self, operator: str, group: int) -> GroupPlace:
        return self._places[operator][group]

    def of_lane(self, lane: LaneId) -> list[int]:
        """The groups that a lane owns."""
        return [group for group, owner in enumerate(self._state.owners[lane.operator]) if owner == lane.lane]

    # -- states

    def primary(self, operator: str, group: int) -> HostId | None:
        return self._places[operator][group].primary

    def copies_of(self, lane: LaneId) -> dict[HostId, int]:
        """Hosts with copies of what a lane owns, each with the number of groups that it knows."""
        known: dict[HostId, int] = {}
        for group in self.of_lane(lane) if lane.operator in self.stateful else ():
            for host in self._places[lane.operator][group].copies:
                known[host] = known.get(host, 0) + 1
        return known

    def is_primary(self, host: int) -> bool:
        """True while the state of a group is current in this host and nowhere else."""
        return any(
            place.primary is not None and place.primary.number == host
            for name in self.stateful
            for place in self._places[name]
        )

    def restored(self, operator: str, group: int, host: HostId) -> None:
        """The state of a group is current in this host from now on."""
        place = self._places[operator][group]
        place.primary = host
        place.copies.pop(host, None)

    def host_lost(self, host: int) -> None:
        for name in self.stateful:
            for place in self._places[name]:
                if place.primary is not None and place.primary.number == host:
                    place.primary = None
                for copy in [copy for copy in place.copies if copy.number == host]:
                    del place.copies[copy]
        for move in [move for move in self._moves if host in (move.from_host.number, move.to_host.number)]:
            self.end(move)

    # -- targets

    def want(self, operator: str, owners: Owners) -> None:
        """Groups of an operator shall be owned so."""
        now = self._state.owners[operator]
        for group, place in enumerate(self._places[operator]):
            place.target = owners[group] if owners[group] != now[group] else None
        self._targeted[operator] = None

    def keep(self, operator: str, groups: tuple[int, ...]) -> None:
        """These groups shall stay where they are."""
        for group in groups:
            self._places[operator][group].target = None

    def targeted(self) -> list[str]:
        """Operators of which some groups are not where they shall be, or were not until now."""
        return list(self._targeted)

    def is_targeted(self, operator: str) -> bool:
        return operator in self._targeted

    def to_move(self, operator: str) -> list[tuple[int, int]]:
        """Groups that are not where they shall be, each with the lane that shall own it."""
        owners = self._state.owners[operator]
        return [
            (group, place.target)
            for group, place in enumerate(self._places[operator])
            if place.target is not None and place.target != owners[group]
        ]

    def all_reached(self) -> list[str]:
        """Operators whose groups all are where they should be by now; they are told once."""
        reached = [operator for operator in self._targeted if not self.to_move(operator)]
        for operator in reached:
            del self._targeted[operator]
            for place in self._places[operator]:
                place.target = None
        return reached

    # -- moves

    @property
    def moves(self) -> tuple[GroupMove, ...]:
        return tuple(self._moves)

    def begin(self, move: GroupMove) -> None:
        for group in move.groups:
            place = self._places[move.operator][group]
            assert place.move is None, f"{move.operator}: key group {group} moves already"
            place.move = move
        self._moves.append(move)
        self.enter(move, GroupPhase.COPYING)

    def enter(self, move: GroupMove, phase: GroupPhase) -> None:
        """Change the phase of a move; a transition that is not in the table is a defect."""
        assert phase in TRANSITIONS[move.phase], f"{move.operator}: {move.phase.value} -> {phase.value}"
        move.phase = phase

    def end(self, move: GroupMove) -> None:
        """A move is over, or given up: its groups are settled."""
        self.enter(move, GroupPhase.SETTLED)
        self._moves.remove(move)
        for group in move.groups:
            self._places[move.operator][group].move = None

    def cancel(self, operator: str) -> None:
        """Give up all moves of an operator: nothing has changed hands yet."""
        for move in [move for move in self._moves if move.operator == operator]:
            self.end(move)

    def hand_over(self, move: GroupMove) -> None:
        """The new host is the primary from now on; what the old one has is a copy, as of now."""
        number = self._state.logs[move.operator].next_number
        for group in move.groups:
            place = self._places[move.operator][group]
            if place.primary is not None and place.primary != move.to_host:
                place.copies[place.primary] = number
            self.restored(move.operator, group, move.to_host)

    def is_frozen(self, lane: LaneId) -> bool:
        """True while a lane gets no work, because groups of it are about to change hands."""
        return any(move.giver == lane and move.phase in FROZEN for move in self._moves)

    def gives(self, lane: LaneId) -> bool:
        """True while groups of this lane are on their way."""
        return any(move.giver == lane for move in self._moves)

    def concerns(self, host: int) -> bool:
        """True while groups are on their way from or to a host."""
        return any(host in (move.from_host.number, move.to_host.number) for move in self._moves)
