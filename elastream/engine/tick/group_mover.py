"""Key groups change hands when replicas do: which groups move where, and in which turn.

A group moves when its lane has no work under way, between two works: then what waits of it moves along, and its tuples stay
in order. Nobody waits for that, for a lane has one work at a time.
"""

from collections.abc import Callable

from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.routing.key_groups import Owners, moves, rebalanced

GroupMoves = dict[str, dict[int, int]]
"""Per operator, the groups that change hands, each with its new lane."""


class GroupMover:
    """For the operators of a run that are reached by keys. In the tick's thread."""

    def __init__(self, state: LedgerState, is_free: Callable[[LaneId], bool]) -> None:
        """`is_free` says whether a lane has nothing under way, nor anything that somebody outside was given."""
        self._state = state
        self._is_free = is_free
        self._wanted: dict[str, Owners] = {}
        """Per operator of which some groups are not where they shall be, where all of them shall be."""

    def follow(self, operator: str) -> None:
        """Its number of replicas may have changed."""
        owners = self._state.owners.get(operator)
        if owners is not None:
            self._wanted[operator] = rebalanced(owners, self._state.sizes[operator])

    def step(self) -> tuple[GroupMoves, list[LaneId]]:
        """Move the groups that can be moved now: which, and the lanes that got tuples by it."""
        moved: GroupMoves = {}
        filled: list[LaneId] = []
        for operator, wanted in list(self._wanted.items()):
            owners = self._state.owners[operator]
            left = moves(owners, wanted)
            now = {group: lane for group, lane in left if self._is_free(LaneId(operator, owners[group]))}
            if now:
                moved[operator] = now
                filled += self._state.move_groups(operator, now)
            if len(now) == len(left):
                del self._wanted[operator]
        return moved, filled
