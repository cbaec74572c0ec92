"""A simulated pipeline in which replicas are in one another's way, and what a policy makes of it."""

from dataclasses import dataclass

from simulations import TURNS

from elastream import Topology, sources
from elastream.control import JournalEntry, Policy
from elastream.policies import make_policy
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import simulate
from elastream.workload import Arrivals

POOL, CORES = 12, 8
SERVICE_MS = (10.0, 20.0, 6.0)
CROWDED = TURNS._replace(cores=CORES, crowding=0.05)
"""Every replica at work beyond the cores makes all of them a twentieth slower: throughput is not linear in replicas."""


@dataclass(frozen=True)
class Outcome:
    """How it was in the end: the last tenth of the run."""

    policy: Policy
    sizes: tuple[int, ...]
    latency_ms: float
    reasons: tuple[str, ...]


def crowded(arrivals: Arrivals, start: int) -> Model:
    flow = Topology("crowded")
    flow.source("in", sources.replay(arrivals))
    known = {"in": OperatorTimes(1e-6, 1.0, 0.0)}
    before = "in"
    for number, service_ms in enumerate(SERVICE_MS):
        name = f"op{number}"
        flow.batch(name, lambda batch: batch, after=before, replicas=(1, POOL), start=start, waits=True)
        shares = {f"op{number + 1}": 1.0, "out": 1.0}
        known[name] = OperatorTimes(service_ms / 1e3, cpu=0.3, spread=1.0, shares=shares)
        before = name
    return make_model(flow.output("out", after=before).topology.build(), known, {"in": arrivals}, nodes=(Node(CORES),))


def played(word: str | Policy, arrivals: Arrivals, *, start: int, seed: int = 1) -> Outcome:
    policy = make_policy(word) if isinstance(word, str) else word
    entries: list[JournalEntry] = []
    simulate(
        crowded(arrivals, start),
        CROWDED,
        policy,
        td_s=5.0,
        seed=seed,
        seconds=arrivals.seconds,
        on_entry=entries.append,
    )
    assert not any(entry.error for entry in entries)
    last = [entry.observation for entry in entries[len(entries) * 9 // 10 :]]
    finished = sum(seen.finished for seen in last)
    latency_s = sum(seen.latency_mean_s * seen.finished for seen in last) / finished
    reasons = [want.reason for entry in entries if entry.proposal for want in entry.proposal.wants[:1]]
    sizes = tuple(operator.replicas for operator in last[-1].scalable())
    return Outcome(policy, sizes, latency_s * 1e3, tuple(dict.fromkeys(reasons)))
