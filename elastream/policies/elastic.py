"""Elastic: a latency target enters, the fewest replicas that keep it leave; there is nothing else to tune.

It asks to be asked four times within the target, so that whatever is late in the next interval has already arrived: then
deadlines can be kept by looking at what waits, and need no forecast. Two things are reckoned for every operator:

- *Keep up*: the rate at which tuples come, and a little more the more it varies. The rate is a mean over as long as the input
  is the same: what is off by more than chance, as learned, begins a new mean. Where a calm stream needed more replicas than
  that, as much more is remembered.
- *Be in time*: the fewest replicas that serve all that waits, here and before, each tuple by its deadline.

It grows to the larger of both at once. It shrinks to that when the backlog is gone and the replicas that were idle since have
cost as much as a rescale is worth; that becomes more when shrinking proves wrong.
"""

from collections import deque
from dataclasses import dataclass
from math import inf, sqrt

from elastream.control import Observation, OperatorObservation, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.flow import Flow
from elastream.policies.psps import whole

LOOKS = 4
"""Decisions within the time that a tuple may take."""
AIM = 0.8
"""Tuples shall be finished after this part of the target: the rest is for what one look does not see."""
MEMORY = 15
"""The longest mean of the rate, in targets."""
CHANCE = 2.0
"""Standard deviations from the mean that are no chance any more."""
LEAST_CHANGE = 0.02
"""Nor is a change called one below this share of the rate."""
LEARNING = 0.02
"""Weight of one look in the variance."""
HEADROOM = 0.1
"""Weight of the variance in what is kept above the rate: without any, all chance would have to be caught up with."""
OVERSHOOT = 1.05
"""When it grows, it grows by a little more than it must, so that it need not grow again at the next look."""
BACKLOG = 0.3
"""Nothing is given up while what waits takes longer than this part of the target."""
WORTH = 1.25
"""Idle replicas times seconds that a rescale is worth, per second of the target; twice as much after one that proved wrong."""
WRONG_S = 10.0
"""A shrink was wrong if the operator grows again so soon, in targets."""
CALM = 0.05
"""A calm stream varies by less than this part of its rate."""
MOST_MORE, FORGETTING = 1.3, 0.0005
"""What a calm stream needed more than its rate: at most this factor; so much of it is forgotten with every look."""


@dataclass
class _Memory:
    """What is known of one operator."""

    idle: float = 0.0
    """Replica seconds not needed since the last rescale."""
    worth: float = 1.0
    shrunk_s: float = -inf
    more: float = 1.0
    """How many times the replicas that its rate takes have proved to be needed."""


class Elastic:
    """The fewest replicas with which tuples are finished within `latency_s`."""

    start = None

    def __init__(self, latency_s: float = 1.0) -> None:
        if not 0 < latency_s < inf:
            raise SettingError(f"policy 'elastic': latency_s must be more than 0, got {latency_s:g}")
        self.name = "elastic" if latency_s == 1.0 else f"elastic:latency_s={latency_s:g}"
        self.every_s = latency_s / LOOKS
        self._latency_s = latency_s
        self._flow = Flow()
        self._now_s = 0.0
        self._read = 0
        self._came: deque[tuple[float, float]] = deque([(0.0, 0.0)])
        """Tuples that had come by each look, the oldest first."""
        self._same_since_s = 0.0
        self._restless_s = 0.0
        """When the input was last not calm."""
        self._variance = 0.0
        self._memories: dict[str, _Memory] = {}

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        self._note(observation)
        per_s = self._level()
        thetas, waiting = self._flow.thetas(observation), self._flow.waiting(observation)
        operators = [operator for operator in observation.scalable() if operator.service_seconds]
        wants = []
        for place, operator in enumerate(operators, 1):
            theta, waits = thetas[operator.operator], waiting[operator.operator]
            # Half of the time is for waiting wherever it comes to that, half is shared by the operators on the way.
            due_s = AIM * self._latency_s * (1 + place / len(operators)) / 2
            keeps_up = per_s * theta * operator.service_seconds
            in_time = self._in_time(theta, waits, due_s) * operator.service_seconds
            wants.append(self._want(operator, keeps_up, in_time, waits, observation.seconds))
        return Proposal(tuple(wants))

    def _note(self, observation: Observation) -> None:
        """What has come, read or not."""
        self._now_s += observation.seconds
        self._read += observation.input
        unread = sum(operator.queued for operator in observation.operators.values() if operator.role == "source")
        self._came.append((self._now_s, float(self._read + unread)))
        while len(self._came) > 2 and self._came[1][0] <= self._now_s - MEMORY * self._latency_s:
            self._came.popleft()

    def _rate(self, since_s: float, until_s: float) -> float | None:
        """Tuples per second that came between the looks at these times or before; None when they are one."""
        (began_s, first), (ended_s, last) = self._look(since_s), self._look(until_s)
        return (last - first) / (ended_s - began_s) if ended_s > began_s else None

    def _look(self, second: float) -> tuple[float, float]:
        return next((look for look in reversed(self._came) if look[0] <= second + 1e-9), self._came[0])

    def _level(self) -> float:
        """The rate to keep up with: the mean since it is the same, and some headroom.

        A queue that is served at c while m come on the average, with variance v, outlasts a second with a probability that falls
        with (c - m) c / v. So that product is kept proportional to the variance.
        """
        now_s, target_s = self._now_s, self._latency_s
        lately = self._rate(now_s - target_s, now_s) or 0.0
        before = self._rate(now_s - 2 * target_s, now_s - target_s)
        mean = self._rate(max(self._same_since_s, now_s - MEMORY * target_s), now_s) or 0.0
        chance = sqrt(self._variance)
        if chance > CALM * mean or lately > (1 + LEAST_CHANGE) * mean + chance:
            self._restless_s = now_s
        if abs(lately - mean) > CHANCE * chance + LEAST_CHANGE * mean:
            self._same_since_s, mean = now_s - target_s, lately
        if before is not None:
            # By differences of neighbours, so that a trend is not taken for chance.
            self._variance += LEARNING * ((lately - before) ** 2 / 2 - self._variance)
        return mean / 2 + sqrt(mean * mean / 4 + HEADROOM * self._variance)

    def _in_time(self, theta: float, waits: float, due_s: float) -> float:
        """Tuples per second that must be served so that all that have come are served `due_s` after they came."""
        served = self._came[-1][1] * theta - waits
        # What is overdue already is served until the next look.
        needs = ((came * theta - served) / max(at_s + due_s - self._now_s, self.every_s) for at_s, came in self._came)
        return max(0.0, *needs)

    def _want(
        self, operator: OperatorObservation, keeps_up: float, in_time: float, waits: float, seconds: float
    ) -> Want:
        memory = self._memories.setdefault(operator.operator, _Memory())
        memory.more -= (memory.more - 1) * FORGETTING
        have, need = operator.replicas, max(keeps_up * memory.more, in_time)
        size = min(max(1, whole(need)), operator.most)
        said = f"{keeps_up * memory.more:.2f} replicas keep up, {in_time:.2f} serve the {waits:.0f} that wait in time"
        if size > have:
            self._learn_from_growth(memory, have, keeps_up, in_time)
            return Want(operator.operator, min(whole(need * OVERSHOOT), operator.most), said)
        if size == have:
            memory.idle = max(0.0, memory.idle - seconds)
            return Want(operator.operator, have, said)
        if waits * operator.service_seconds / have > BACKLOG * self._latency_s:
            return Want(operator.operator, have, f"{said}; the backlog is not gone yet")
        memory.idle += (have - size) * seconds
        worth = memory.worth * WORTH * self._latency_s
        if memory.idle <= worth:
            return Want(operator.operator, have, f"{said}; {memory.idle:.1f} replica seconds idle of {worth:.1f}")
        if memory.shrunk_s > -inf:
            memory.worth = 1.0
        memory.idle, memory.shrunk_s = 0.0, self._now_s
        return Want(operator.operator, size, f"{said}; idle for {worth:.1f} replica seconds")

    def _learn_from_growth(self, memory: _Memory, have: int, keeps_up: float, in_time: float) -> None:
        calm = self._now_s - self._restless_s >= 3 * self._latency_s
        if calm and in_time > keeps_up * memory.more and keeps_up:
            # The rate is what it was, and yet there were too few: next time it shall be one more.
            memory.more = min(MOST_MORE, max(memory.more, (have + 0.01) / keeps_up))
        if self._now_s - memory.shrunk_s < WRONG_S * self._latency_s:
            memory.worth = 2.0
        memory.idle, memory.shrunk_s = 0.0, -inf
