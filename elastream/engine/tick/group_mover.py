"""Key groups change hands when replicas do: which groups move where, and in which turn.

A group moves when its lane has no work under way, between two works: then what waits of it moves along, and its tuples stay
in order. Nobody waits for that, for a lane has one work at a time. Where something is remembered of its keys, and the new lane
lives in another host, its state is transferred first.
"""

from collections import deque
from collections.abc import Callable, Iterable

from elastream.control import Move, StateMoved
from elastream.engine.tick.roster import HostId, Roster
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.suspects import Suspects
from elastream.engine.tick.timers import LaneTimers
from elastream.engine.tick.transfers import Step, Transfer, Transfers
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.routing.key_groups import Owners, moves, rebalanced

MOST_RECEIPTS = 1000
"""The newest are kept."""

GroupMoves = dict[str, dict[int, int]]
"""Per operator, the groups that change hands, each with its new lane."""


def _add(receipt: StateMoved, transfer: Transfer) -> None:
    """A transfer is over, agreed or refused."""
    receipt.between_hosts += len(transfer.groups)
    receipt.waited_ms = max(receipt.waited_ms, transfer.waited_s * 1e3)
    for facts in transfer.before.values():
        receipt.keys += facts.keys
        receipt.bytes += facts.size
        receipt.checksum_before += facts.checksum
    receipt.checksum_after += sum(facts.checksum for facts in transfer.after.values())
    if transfer.step is Step.REFUSED:
        receipt.problem = "what the new host has learned is not what the old one has; the groups stay where they were"


class GroupMover:
    """For the operators of a run that are reached by keys. In the tick's thread."""

    def __init__(
        self,
        state: LedgerState,
        is_free: Callable[[LaneId], bool],
        roster: Roster,
        keeper: StateKeeper,
        timers: LaneTimers,
        suspects: Suspects,
    ) -> None:
        """`is_free` says whether a lane has nothing under way, nor anything that somebody outside was given."""
        self._state = state
        self._is_free = is_free
        self._roster = roster
        self._keeper = keeper
        self._timers = timers
        self._suspects = suspects
        self.transfers = Transfers(keeper, is_free)
        self._wanted: dict[str, Owners] = {}
        """Per operator of which some groups are not where they shall be, where all of them shall be."""
        self._receipts: dict[str, StateMoved] = {}
        self.receipts: deque[StateMoved] = deque(maxlen=MOST_RECEIPTS)
        """Of changes that are over, of operators that remember something."""
        self._ended = 0

    def follow(self, operator: str, now: float, wall_s: float) -> None:
        """Its number of replicas may have changed."""
        owners, size = self._state.owners.get(operator), self._state.sizes[operator]
        if owners is None:
            return
        if operator not in self._keeper.operators:
            self._wanted[operator] = rebalanced(owners, size)
            return
        # What was on its way is where it was, and finds another way from there.
        self.transfers.cancel(operator)
        homes = [self._roster.settled(LaneId(operator, lane)) for lane in range(max(size, max(owners) + 1))]
        wanted = rebalanced(owners, size, lambda giver, taker: homes[giver] is homes[taker])
        self._wanted[operator] = wanted
        self._open_receipt(operator, now, wall_s)

    def is_moving(self, operator: str) -> bool:
        """True while some of its groups are not where they shall be."""
        return operator in self._wanted

    def redirect(self, operator: str, wanted: Owners, now: float, wall_s: float) -> None:
        """Its groups shall be owned so, because of load."""
        self._wanted[operator] = wanted
        if operator in self._keeper.operators:
            self._open_receipt(operator, now, wall_s)

    def place(self, moves: Iterable[Move]) -> None:
        """Lanes live in these hosts from now on; those that remember something follow one after another."""
        for move in moves:
            self._roster.pin(LaneId(move.operator, move.lane), move.after)

    def _open_receipt(self, operator: str, now: float, wall_s: float) -> None:
        size = self._state.sizes[operator]
        if moves(self._state.owners[operator], self._wanted[operator]):
            self._receipts.setdefault(operator, StateMoved(operator, size, wall_s, took_ms=-now * 1e3)).replicas = size

    def step(self, now: float) -> tuple[GroupMoves, list[LaneId]]:
        """Move the groups that can be moved now: which, and the lanes that got tuples by it."""
        moved: GroupMoves = {}
        for transfer in self.transfers.advance(now) if self._keeper else ():
            self._hand_over(transfer, moved)
        for operator, wanted in list(self._wanted.items()):
            owners = self._state.owners[operator]
            left = [(group, lane) for group, lane in moves(owners, wanted) if group not in moved.get(operator, {})]
            if operator in self._keeper.operators:
                left = self._transfer(operator, left)
            found = {group: lane for group, lane in left if self._is_free(LaneId(operator, owners[group]))}
            if found:
                moved.setdefault(operator, {}).update(found)
            if operator in self._receipts:
                self._receipts[operator].groups += len(found)
        filled: list[LaneId] = []
        for operator, groups in moved.items():
            givers = {self._state.owners[operator][group] for group in groups}
            filled += self._state.move_groups(operator, groups)
            self._timers.groups_moved(operator, {*givers, *groups.values()})
        for operator in [name for name, wanted in self._wanted.items() if self._state.owners[name] == wanted]:
            del self._wanted[operator]
            if operator in self._receipts:
                receipt = self._receipts.pop(operator)
                receipt.took_ms += now * 1e3
                if receipt.groups or receipt.problem:
                    self._ended += 1
                    receipt.number = self._ended
                    self.receipts.append(receipt)
        return moved, filled

    def spread(self, now: float) -> None:
        """Lanes that remember something follow when a host has come or shall go: one at a time, until all have as many."""
        for operator in sorted(self._keeper.operators):
            lanes = [LaneId(operator, number) for number in set(self._state.owners[operator])]
            homes = {lane: home for lane in lanes if (home := self._roster.home(lane)) is not None}
            if any(map(self.transfers.gives, lanes)) or operator in self._wanted:
                continue
            leaving = next((lane for lane, home in homes.items() if self._roster.hosts[home].leaving), None)
            if leaving is not None:
                staying = self._roster.emptiest(operator)
                if staying is not None:
                    self._send_home(leaving, homes[leaving], staying)
                continue
            if len(homes) < len(lanes):
                continue
            pinned = next((lane for lane in lanes if self._roster.pins.get(lane, homes[lane]) != homes[lane]), None)
            if pinned is not None:
                self._send_home(pinned, homes[pinned], self._roster.pins[pinned])
                continue
            counts = {host: 0 for host, seats in self._roster.staying().items() if not seats.alone}
            for home in homes.values():
                counts[home] = counts.get(home, 0) + 1
            fullest, emptiest = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
            if counts[fullest] - counts[emptiest] > 1:
                free = [lane for lane, home in homes.items() if home == fullest and lane not in self._roster.pins]
                if free:
                    self._send_home(min(free), fullest, emptiest)

    def _send_home(self, lane: LaneId, from_host: int, to_host: int) -> None:
        """A lane that remembers something moves, with all of it."""
        # One that is suspected is tried again where it is: standing still for a transfer, it never would be.
        if lane not in self._suspects and self._keeper.prepare(lane):
            giver, taker = self._roster.hosts[from_host].identity, self._roster.hosts[to_host].identity
            self.transfers.begin(tuple(self._keeper.groups_of(lane)), lane, lane, giver, taker)

    def _transfer(self, operator: str, left: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Of the groups that shall move, those whose state is where it is needed; the others are sent for."""
        owners, ready = self._state.owners[operator], []
        sent: dict[tuple[int, int, HostId, HostId], list[int]] = {}
        for group, number in left:
            if self.transfers.is_moving(operator, group):
                continue
            live, home = self._keeper.live_host(operator, group), self._roster.settled(LaneId(operator, number))
            if home is None:
                continue
            if live is None or live == home.identity:
                ready.append((group, number))
            else:
                sent.setdefault((owners[group], number, live, home.identity), []).append(group)
        for (giver, taker, from_host, to_host), groups in sent.items():
            lane = LaneId(operator, giver)
            if not self.transfers.gives(lane) and lane not in self._suspects:
                some = self._keeper.portions(operator, groups)[0]
                self.transfers.begin(some, lane, LaneId(operator, taker), from_host, to_host)
        return ready

    def _hand_over(self, transfer: Transfer, moved: GroupMoves) -> None:
        operator = transfer.operator
        receipt = self._receipts.get(operator)
        if receipt is not None and transfer.giver != transfer.taker:
            _add(receipt, transfer)
        if transfer.step is Step.REFUSED:
            if operator in self._wanted:
                for group in transfer.groups:
                    self._wanted[operator][group] = self._state.owners[operator][group]
            return
        self._keeper.moved(operator, transfer.groups, transfer.to_host)
        if transfer.giver == transfer.taker:
            self._roster.move(transfer.giver, transfer.to_host.number)
        else:
            moved.setdefault(operator, {}).update(dict.fromkeys(transfer.groups, transfer.taker.lane))
            if receipt is not None:
                receipt.groups += len(transfer.groups)
