"""Small simulations: operators in a line, by the engine's turns or tuple by tuple."""

from dataclasses import replace
from typing import Any

from elastream import Topology, groupings, sources
from elastream.control import Observation, Policy, Proposal, Want, interval_of
from elastream.policies import make_policy
from elastream.report.series import Sample
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.fidelity import Fidelity
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import Simulated, simulate
from elastream.simulator.storm_steps import StormSteps
from elastream.topology import Grouping
from elastream.workload import Arrivals

TURNS = EngineTurns(
    turn_s=0.0005,
    receipt_s=0.0001,
    work_s=0.0005,
    tuple_s=1e-5,
    hop_s=0.0002,
    cores=16,
    slots=64,
    budget_s=0.05,
    max_budget_s=1.0,
)
STORM = StormSteps(step_s=0.002, crowding=0.0)
WAITS = OperatorTimes(0.01, cpu=0.0, spread=0.0)
"""Ten milliseconds in which no core is needed."""
COUNTS = OperatorTimes(0.001, cpu=1.0, spread=0.0)
BY_ID = groupings.fields("id")


def line(
    arrivals: Arrivals,
    *,
    length: int = 2,
    pool: int = 8,
    grouping: Grouping = groupings.shuffle,
    times: OperatorTimes = WAITS,
    shares: tuple[float, ...] = (),
    nodes: tuple[Node, ...] = (Node(16),),
    start: int = 1,
    zipf: float = 0.0,
) -> Model:
    """Operators one behind another; `shares` say how much each passes on."""
    flow = Topology("line")
    flow.source("in", sources.replay(arrivals))
    known = {"in": OperatorTimes(1e-6, 1.0, 0.0)}
    before = "in"
    for number in range(length):
        name = f"op{number}"
        flow.batch(
            name, lambda batch: batch, after=before, replicas=(1, pool), start=start, grouping=grouping, waits=True
        )
        share = shares[number] if number < len(shares) else 1.0
        known[name] = replace(times, shares={f"op{number + 1}": share, "out": share})
        before = name
    graph = flow.output("out", after=before).topology.build()
    return make_model(graph, known, {"in": arrivals}, nodes=nodes, zipf=zipf)


def counting(
    arrivals: Arrivals,
    *,
    pool: int = 8,
    start: int = 1,
    keys: int = 1000,
    zipf: float = 0.0,
    nodes: tuple[Node, ...] = (Node(8), Node(8)),
    times: OperatorTimes = COUNTS,
    grouping: Grouping = BY_ID,
    keyed: bool = True,
) -> Model:
    """A source, and an operator that keys choose the replicas of; it counts them when it is `keyed`."""
    flow = Topology("counting")
    flow.source("in", sources.replay(arrivals))
    if keyed:
        by_id = flow.key_by("id", redirect=grouping.redirects, after="in")
        by_id.process(
            "count",
            _count,
            state="n long",
            initial={"n": 0},
            schema="id long, n long",
            replicas=(1, pool),
            start=start,
        )
    else:
        flow.batch("count", lambda batch: batch, after="in", replicas=(1, pool), start=start, grouping=grouping)
    graph = flow.output("out", after="count").topology.build()
    known = {"in": OperatorTimes(1e-6, 1.0, 0.0), "count": times}
    return make_model(graph, known, {"in": arrivals}, nodes=nodes, keys=keys, zipf=zipf)


def _count(key: Any, rows: Any, state: Any) -> Any:
    state.n += len(rows)
    yield {"id": key, "n": state.n}


def sized(model: Model, policy: Any, system: Any = TURNS, fidelity: Any = Fidelity, **more: Any) -> Simulated:
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    seconds = more.pop("seconds", 1000.0)
    return simulate(
        model,
        system,
        chosen,
        td_s=interval_of(chosen, None, 2.0),
        seed=more.pop("seed", 1),
        seconds=seconds,
        fidelity=fidelity,
        **more,
    )


def waiting(run: Simulated) -> float:
    """The mean of all that waits, over time."""
    rows: list[tuple[Sample, ...]] = list(
        zip(*(run.record.series.operators[name] for name in run.record.pools), strict=True)
    )
    total = sum(sum(sample.queued for sample in row) * row[0].seconds for row in rows)
    return total / sum(row[0].seconds for row in rows)


class Grows(Policy):
    """From one replica to all, once."""

    name = "grows"
    start = None

    def propose(self, seen: Observation) -> Proposal:
        return Proposal(tuple(Want(o.operator, o.most, "all") for o in seen.scalable()))
