"""A policy of your own: no tuple shall wait longer than a second and a half in front of an operator.

    python examples/04_your_own_policy.py [BASE_DIR]

A policy is a subclass of `Policy` with `propose`: what was measured enters, what it wants leaves, each with its reason. It has no clock, no
I/O and no Spark, so the same object can be tried on the journal of a run that is over (elastream.control.replay) and in a
test (elastream.testing). Guards see to the rest: limits, cooldown, slack, slots.
"""

import math
import sys
import time

from elastream import Policy, Proposal, Topology, Want, sources, start, workload


class KeepDelay(Policy):
    """Enough replicas to serve what arrives, and what waits within `target_s`."""

    name = "keep-delay"

    def __init__(self, target_s):
        self.target_s = target_s

    def propose(self, observation):
        return Proposal(tuple(self._want(operator, observation) for operator in observation.scalable()))

    def _want(self, operator, observation):
        sources = [observation.operators[name] for name in operator.received_from]
        waiting = operator.queued + sum(source.queued for source in sources if source.role == "source")
        per_second = operator.received / observation.seconds + waiting / self.target_s
        need = per_second * operator.service_seconds
        reason = f"{waiting} wait, {per_second:.0f} to be served a second for {self.target_s:g} s of waiting"
        return Want(operator.operator, max(1, math.ceil(need)), reason, need)


def look_up(row):
    time.sleep(0.005)  # a service elsewhere
    return row


app = Topology("lookups")
requests = app.source("requests", sources.replay(workload.steps([50, 500, 50, 50], seconds=10)))
requests.map("look_up", look_up, replicas=(1, 8), waits=True).output("answers")

if __name__ == "__main__":
    with start(app, *sys.argv[1:], policy=KeepDelay(target_s=1.5), td_s=1) as handle:
        handle.on_decision(
            lambda entry: [
                print(f"{d.operator}: {d.before} -> {d.after}  {d.words}") for d in entry.decisions if d.rescales
            ]
        )
        handle.await_end()
        print(handle.audit())
