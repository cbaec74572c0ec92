"""Elastic: a latency target enters, the fewest replicas that keep it leave; there is nothing else to tune.

It asks to be asked eight times within the target, so that whatever is late at the next look has already come: deadlines can
then be kept by looking at what waits, without a forecast. While something waits and nothing is late, every replica is busy
and none is missing: nothing is changed. There are two reasons to change replicas:

- *Something would be late.* The fewest replicas that serve all that waits, here and before, each tuple by its deadline, are
  more than there are. It grows to what keeps up with the latest rate for a while, so that it need not grow again at once.
- *Replicas are idle.* Over some window that ended now the input took fewer. It shrinks to what that window took, and a
  little more, as soon as the surplus times the length of the window is what a rescale is worth (as in the ski-rental problem):
  a large surplus goes after half a target, a small one after eight.

Operators change together: what makes one late will be at the next one in a moment, and a change of several costs no more than
that of one. So when one must grow, all grow to what keeps up; and a surplus is that of all operators, unless one has enough
for itself.

Where keys choose the replica, a change moves their tuples and their state. Such operators shrink each by itself, when idle replicas
have cost what the move costs (`move_price.py`), and do not change again while keys are on their way.

Tuples stay in the lane that they were given. Those that are so many in one lane that they will be late in any case call for
no replicas: that would only help others. What a replica can serve is its service time and what the engine takes around it,
learned while lanes are full.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf

from elastream.control import Observation, OperatorObservation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.flow import Flow
from elastream.policies.move_price import MovePrice
from elastream.policies.psps import whole

LOOKS = 8
"""Decisions within the time that a tuple may take."""
AIM = 0.87
"""Tuples shall be finished after this part of the target: the rest is for what one look does not see."""
FIRST = 0.4
"""The part of that time which is for waiting wherever it comes to that; the rest is shared by the operators on the way."""
OVERDUE = 0.25
"""What is overdue shall be served within this part of the target."""
STUCK = 0.8
"""Tuples behind so much work of their lane, in targets, will be late whatever is added."""
LATEST = 2
"""Looks whose mean is the latest rate."""
AHEAD, AHEAD_AT_FIRST = 2.0, 9.0
"""Targets for which the latest rate is expected to go on, when it grows; and when the stream begins."""
OVERSHOOT = 1.05
"""It grows by a little more than it must."""
WINDOWS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Times over which a surplus is looked for, in targets."""
ROOM = 1.05
"""It shrinks to a little more than the window took."""
EMPTY = 0.2
"""Nothing is given up while a lane has more work than this on the average, in targets: its replica is not idle."""
WORTH, WORTH_EACH = 1.8, 0.36
"""Idle replicas times targets that a rescale of an operator is worth: so many, or so many for each replica if that is more."""
ALONE = 3.0
"""An operator with so many times that shrinks although the others have no surplus."""
FULL = 0.3
"""Lanes are full with so much work each, in targets."""
USABLE, LEAST_USABLE, LEARNING = 0.92, 0.8, 0.05
"""The share of its time that a replica can serve: at first, at least, and the weight of one look in it."""


@dataclass
class _Memory:
    """Knowledge of one operator."""

    changed_s: float = 0.0
    """When it was last rescaled: a surplus counts from then on."""
    usable: float = USABLE
    queued: int = 0
    """At the last look."""
    moving: MovePrice = field(default_factory=MovePrice)
    """Where keys choose the replica: what a change costs, and what idle replicas have cost since."""


@dataclass(frozen=True)
class _View:
    """One operator at one look. Work is in replicas: what so many can serve in a second."""

    operator: OperatorObservation
    memory: _Memory
    takes_s: float
    """Work per tuple of the graph's input."""
    waits: float
    """Work that waits, here and before."""
    helped: float
    """Tuples of it that may yet be in time."""
    due_s: float
    in_time: float
    """Replicas with which all that waits is served by its deadline."""

    settles: bool
    """Its keys are on their way, or what waited for them is: another change would only add to it."""

    @property
    def is_late(self) -> bool:
        return not self.settles and min(whole(self.in_time), self.operator.most) > self.operator.replicas

    @property
    def worth(self) -> float:
        return max(WORTH, WORTH_EACH * self.operator.replicas)


class Elastic(Policy):
    """The fewest replicas with which tuples are finished within `latency_s`."""

    targets = ("latency_s",)

    def __init__(self, latency_s: float = 1.0) -> None:
        if not 0 < latency_s < inf:
            raise SettingError(f"policy 'elastic': latency_s must be more than 0, got {latency_s:g}")
        self.name = "elastic" if latency_s == 1.0 else f"elastic:latency_s={latency_s:g}"
        self.every_s = latency_s / LOOKS
        self._latency_s = latency_s
        self._flow = Flow()
        self._now_s = self._seconds = 0.0
        self._read = 0
        self._came: deque[tuple[float, float]] = deque([(0.0, 0.0)])
        """Tuples that had come by each look, the oldest first."""
        self._memories: dict[str, _Memory] = {}

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        self._note(observation)
        views = self._views(observation)
        late = [view.operator.operator for view in views if view.is_late]
        sizes, why = self._grown(views, late[0]) if late else self._shrunk(views)
        wants = []
        for view in views:
            operator = view.operator
            size = min(max(sizes.get(operator.operator, operator.replicas), operator.least), operator.most)
            if size != operator.replicas:
                view.memory.changed_s = self._now_s
                if operator.by_key:
                    view.memory.moving.changes(operator.replicas, size, self._price_s(view), self._now_s)
            asked = max(size, self._needed(view)) if size == operator.most else size
            said = f"{view.in_time:.2f} replicas serve the {view.helped:.0f} that wait in time; {why}"
            wants.append(Want(operator.operator, asked, said))
        return Proposal(tuple(wants))

    def _needed(self, view: _View) -> int:
        """Replicas that an operator would have without its limit; guards clip them, and say so."""
        keeps_up = self._rate(self._latency_s) * view.takes_s
        return 0 if view.settles else whole(max(view.in_time, keeps_up) * OVERSHOOT)

    def _views(self, observation: Observation) -> list[_View]:
        for moved in observation.state_moves:
            self._memories.setdefault(moved.operator, _Memory()).moving.took(moved.took_ms / 1e3)
        thetas, waiting = self._flow.thetas(observation), self._flow.waiting(observation)
        helped = self._flow.waiting(observation, self._not_stuck)
        operators = [operator for operator in observation.scalable() if operator.service_seconds]
        views = []
        for place, operator in enumerate(operators, 1):
            name = operator.operator
            memory = self._memories.setdefault(name, _Memory())
            self._learn(memory, operator, observation.seconds)
            takes_s = operator.service_seconds / memory.usable
            due_s = AIM * self._latency_s * (FIRST + (1 - FIRST) * place / len(operators))
            in_time = self._in_time(thetas[name], helped[name], due_s) * takes_s
            work, waits = thetas[name] * takes_s, waiting[name] * takes_s
            settles = operator.by_key and memory.moving.settles(self._now_s)
            views.append(_View(operator, memory, work, waits, helped[name], due_s, in_time, settles))
        return views

    def _note(self, observation: Observation) -> None:
        """Remember how many tuples have come, read or not."""
        self._now_s += observation.seconds
        self._seconds = observation.seconds
        self._read += observation.input
        unread = sum(operator.queued for operator in observation.operators.values() if operator.role == "source")
        self._came.append((self._now_s, float(self._read + unread)))
        while len(self._came) > 2 and self._came[1][0] <= self._now_s - WINDOWS[-1] * self._latency_s:
            self._came.popleft()

    def _not_stuck(self, operator: OperatorObservation) -> float:
        """Tuples that wait and may yet be in time; in lanes that are switched off they wait for nobody else.

        Where keys tell the replica, new ones take keys over with what waits of them: all are helped.
        """
        if operator.by_key or not operator.lanes or not operator.service_seconds:
            return operator.queued
        most = STUCK * self._latency_s / operator.service_seconds
        return sum(min(lane.queued, most) for lane in operator.lanes if lane.active)

    def _learn(self, memory: _Memory, operator: OperatorObservation, seconds: float) -> None:
        """The share of its time that a replica can serve, where all were full at both ends of the interval."""
        full = FULL * self._latency_s * operator.replicas / operator.service_seconds
        if min(memory.queued, operator.queued) > full:
            share = operator.busy_seconds / (operator.replicas * seconds)
            memory.usable += LEARNING * (min(1.0, max(LEAST_USABLE, share)) - memory.usable)
        memory.queued = operator.queued

    def _rate(self, seconds: float) -> float:
        """Tuples per second that came since the look so long ago."""
        since_s = self._now_s - seconds + 1e-9
        began_s, before = next((look for look in reversed(self._came) if look[0] <= since_s), self._came[0])
        return (self._came[-1][1] - before) / (self._now_s - began_s)

    def _in_time(self, theta: float, waits: float, due_s: float) -> float:
        """Tuples per second that must be served so that all that have come are served `due_s` after they came."""
        served = self._came[-1][1] * theta - waits
        need = 0.0
        for at_s, came in reversed(self._came):
            left_s = at_s + due_s - self._now_s
            need = max(need, (came * theta - served) / max(left_s, OVERDUE * self._latency_s))
            if left_s <= OVERDUE * self._latency_s:
                break
        return need

    def _grown(self, views: list[_View], late: str) -> tuple[dict[str, int], str]:
        """Replicas that serve what waits and what will come, if it goes on like this for a while; none fewer than there are."""
        begins = self._now_s <= 2 * self._latency_s
        ahead_s = (AHEAD_AT_FIRST if begins else AHEAD) * self._latency_s
        latest = self._rate(LATEST * self._latency_s / LOOKS)
        sizes = {}
        for view in views:
            if view.settles:
                continue
            keeps_up = (view.waits + latest * view.takes_s * ahead_s) / (view.due_s + ahead_s)
            size = whole(max(view.in_time, keeps_up) * OVERSHOOT)
            sizes[view.operator.operator] = max(size, view.operator.replicas + view.is_late)
        return sizes, f"{late} would be late, and all are to keep up"

    def _shrunk(self, views: list[_View]) -> tuple[dict[str, int], str]:
        """Replicas that a window took whose surplus was worth a rescale, and why; none where it was not.

        Operators whose keys choose the replica pay for the move, each for itself.
        """
        sizes, why = self._shrunk_free([view for view in views if not view.operator.by_key])
        moved, paid = self._shrunk_keyed([view for view in views if view.operator.by_key])
        return sizes | moved, "; ".join(filter(None, (why, paid)))

    def _shrunk_keyed(self, views: list[_View]) -> tuple[dict[str, int], str]:
        """Replicas of keyed operators that were idle for as long as the move of their keys is worth."""
        rate, sizes, reasons = self._rate(WINDOWS[0] * self._latency_s), {}, []
        for view in views:
            operator, moving = view.operator, view.memory.moving
            taken = max(operator.least, whole(max(rate * view.takes_s * ROOM, view.in_time)))
            busy = self._is_busy(operator)
            moving.look(operator.replicas, operator.replicas if busy else taken, self._now_s - self._seconds)
            sizes[operator.operator] = moving.shrunk(operator.replicas, self._price_s(view), self._now_s)
            reasons.append(f"a move of {operator.operator} is worth {self._price_s(view):.1f} idle replica seconds")
        return sizes, "; ".join(reasons)

    def _price_s(self, view: _View) -> float:
        return view.memory.moving.price_s(view.operator.replicas, view.worth * self._latency_s)

    def _shrunk_free(self, views: list[_View]) -> tuple[dict[str, int], str]:
        if not views:
            return {}, ""
        worth = sum(view.worth for view in views)
        idle = [view for view in views if not self._is_busy(view.operator)]
        for targets in WINDOWS:
            seconds = targets * self._latency_s
            rate = self._rate(seconds)
            sizes: dict[str, int] = {}
            surplus, alone = 0, False
            for view in idle:
                have = view.operator.replicas
                size = max(view.operator.least, whole(max(rate * view.takes_s * ROOM, view.in_time)))
                if size < have and seconds <= self._now_s - view.memory.changed_s + 1e-9:
                    sizes[view.operator.operator] = size
                    surplus += have - size
                    alone |= (have - size) * targets >= ALONE * view.worth
            if sizes and (alone or surplus * targets >= worth):
                return sizes, f"{surplus} of {sum(v.operator.replicas for v in views)} were idle for {seconds:g} s"
        return {}, "too few were idle, or not for long enough" if idle else "none is idle"

    def _is_busy(self, operator: OperatorObservation) -> bool:
        return self._not_stuck(operator) * operator.service_seconds > EMPTY * self._latency_s * operator.replicas
