"""The clairvoyant: it knows what will arrive, and gives at every moment the fewest replicas that keep a limit on latency.

It takes what waits for an operator as one queue, and keeps enough lanes for what comes next: where lanes are unevenly full all
the same, some tuples are later. No policy can do this live. It is the limit against which the others are measured: how many replica seconds more they take is their regret.
"""

import numpy as np
import numpy.typing as npt

from elastream.control import Observation, OperatorObservation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.flow import Flow
from elastream.policies.psps import whole
from elastream.workload import Arrivals

Floats = npt.NDArray[np.float64]

LOOKS = 8
"""Decisions within the time that a tuple may take: a bound must not be coarser than what it bounds."""
STEPS = 4
"""Deadlines that are looked at within an interval."""
AHEAD_S = 600.0
"""How far it looks for a peak that all replicas together can only serve when little waits before it."""


class Oracle(Policy):
    """Serves every tuple as late as the limit allows, so that nothing is served by a replica that could be saved."""

    name = "oracle"
    targets = ("latency_s",)

    def __init__(self, latency_s: float = 2.0) -> None:
        if not 0 < latency_s < float("inf"):
            raise SettingError(f"policy 'oracle': latency_s must be more than 0, got {latency_s}")
        self.every_s = latency_s / LOOKS
        self._latency_s = latency_s
        self._flow = Flow()
        self._arrivals: tuple[Arrivals, ...] = ()
        self._now_s = 0.0

    def foresee(self, arrivals: tuple[Arrivals, ...]) -> None:
        """Learn what every source will bring. Whoever runs this policy tells it before the run."""
        self._arrivals = arrivals

    def propose(self, observation: Observation) -> Proposal:
        self._now_s += observation.seconds
        if not observation.seconds:
            return Proposal()
        if not self._arrivals:
            raise SettingError("policy 'oracle': nobody told it what will arrive; it needs replayed sources")
        thetas, waiting = self._flow.thetas(observation), self._flow.waiting(observation)
        operators = list(observation.scalable())
        tick_s = observation.seconds / max(1, observation.ticks)
        wants = []
        for place, operator in enumerate(operators):
            if operator.service_seconds:
                # Each operator has its part of the limit; what reaches a later one has spent the parts before.
                part_s = self._latency_s / len(operators)
                # What is served is done a tick after its service, and a decision holds for an interval.
                due_s = part_s * (place + 1) - operator.service_seconds - tick_s - observation.seconds
                need = self._need(
                    operator, thetas[operator.operator], waiting[operator.operator], observation.seconds, part_s, due_s
                )
                # It knows that a smaller size will do, so it names no need for a guard to keep a slack above.
                wants.append(Want(operator.operator, max(1, whole(need)), self._reason(need)))
        return Proposal(tuple(wants))

    def _need(
        self, operator: OperatorObservation, theta: float, waits: float, td_s: float, part_s: float, due_s: float
    ) -> float:
        """The fewest replicas with which every deadline up to the end of the next interval can be kept, and later ones too.

        `due_s` after it came a tuple shall be served, and `part_s` before that it is here.
        """
        one_serves = 1.0 / operator.service_seconds
        most = operator.most * one_serves
        now_s = self._now_s
        served = self._came(np.array([now_s]))[0] * theta - waits
        steps: Floats = np.linspace(td_s / STEPS, td_s, STEPS)
        due = self._came(now_s + steps - due_s) * theta
        need = float(np.max((due - served) / np.maximum(steps, td_s / 2), initial=0.0))
        # A replica cannot serve before tuples are there: what comes in the middle of the interval has only what is left of it.
        here = self._came(now_s + steps - due_s + part_s) * theta
        for step in range(STEPS - 1):
            left = (due[step + 1 :] - here[step]) / (steps[step + 1 :] - steps[step])
            need = max(need, float(np.max(left, initial=0.0)))
        # Tuples stay in their lane: so many lanes that what comes in the interval fits behind what waits in the fullest.
        fullest_s = max((lane.queued for lane in operator.lanes if lane.active), default=0) / one_serves
        before = self._came(np.array([now_s - due_s + part_s]))[0] * theta
        need = max(need, float(here[-1] - before) / max(part_s - fullest_s, td_s))
        # What must be done by the end of the interval so that later peaks can be served by all that there are.
        later: Floats = np.arange(1.0, AHEAD_S / self._latency_s + 1.0) * self._latency_s
        due_later = self._came(now_s + td_s + later - due_s) * theta - served
        must = float(np.max(due_later - most * later, initial=0.0))
        return max(need, must / td_s) / one_serves

    def _came(self, seconds: Floats) -> Floats:
        total = np.zeros(len(seconds))
        for arrivals in self._arrivals:
            total += arrivals.counts_at(seconds)
        return total

    def _reason(self, need: float) -> str:
        return f"{need:.2f} replicas keep every tuple within {self._latency_s:g} s, as is known beforehand"
