"""Fit the simulator's constants to measured ticks: times of operators, costs of works and of the driver's turns."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from elastream.engine.driver.ports import Tick
from elastream.simulator.profile import Machine, OperatorTimes
from elastream.topology import Graph, Kind

Floats = npt.NDArray[np.float64]

LEAST_S = 1e-6
"""No tuple takes less."""


@dataclass(frozen=True)
class Costs:
    """Works, tuples and turns of a stretch, and the processor time that they took."""

    works: int
    tuples: int
    around_s: float
    """Processor time of hosts that no operator used."""
    receipts: float
    """Per turn."""
    turn_s: float


def operator_times(graph: Graph, ticks: Sequence[Tick]) -> dict[str, OperatorTimes]:
    """From the receipts of works: what one tuple takes, and what one work takes besides."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    busy_s: defaultdict[str, list[float]] = defaultdict(list)
    cpu_s: defaultdict[str, float] = defaultdict(float)
    sent: Counter[tuple[str, str]] = Counter()
    head_of: dict[str, str] = {
        m.name: head.name for head in (*graph.sources, *graph.served) for m in graph.chain(head.name)
    }
    for tick in ticks:
        together: dict[tuple[str, int], list[float]] = {}
        for receipt in tick.result.receipts:
            head = head_of[receipt.operator]
            # What is chained to an operator comes right behind it, on the same lane.
            found = together.setdefault((head, receipt.lane), [0, 0.0])
            found[0] += receipt.processed if receipt.operator == head else 0
            found[1] += receipt.busy_s
            cpu_s[head] += receipt.cpu_s
        for (head, _), (processed, seconds) in together.items():
            if processed:
                rows[head].append(int(processed))
                busy_s[head].append(seconds)
        for lane, senders in tick.result.sent.items():
            for sender, count in senders.items():
                sent[sender, lane.operator] += count
    found_times = {}
    for operator in (*graph.sources, *(o for o in graph.served if o.kind is not Kind.OUTPUT)):
        name: str = operator.name
        taken, took_s = np.array(rows[name], np.float64), np.array(busy_s[name])
        call_s, service_s = fit_line(taken, took_s)
        count, total_s = max(1.0, taken.sum()), float(took_s.sum())
        found_times[str(name)] = OperatorTimes(
            service_s=float(f"{max(service_s, LEAST_S):.4g}"),
            cpu=round(min(1.0, cpu_s[name] / total_s), 3) if total_s else 1.0,
            spread=_spread(taken, took_s, call_s, service_s),
            shares={
                str(edge.target): round(sent[name, edge.target] / count, 4)
                for edge in graph.edges_leaving(operator.name)
            },
            call_s=float(f"{call_s:.4g}"),
        )
    return found_times


def fit_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Where the line through these points begins, and how it rises; neither below 0. A point that is far off hardly counts.

    Points with the same x count together, by their median: a pause of the machine is no cost of a work.
    """
    from scipy.optimize import least_squares

    if not len(x):
        return 0.0, 0.0
    places = np.unique(x)
    middles = np.array([np.median(y[x == place]) for place in places])
    weights = np.sqrt(np.array([np.sum(x == place) for place in places]))
    if len(places) == 1:
        return 0.0, float(middles[0] / places[0]) if places[0] else 0.0
    size, reach = float(np.median(np.abs(middles))) or 1.0, float(places.max())

    def apart(line: Floats) -> Floats:
        return np.asarray(weights * (line[0] + line[1] * places / reach - middles / size))

    found = least_squares(apart, [0.5, 1.0], bounds=(0.0, np.inf), loss="soft_l1", f_scale=0.1)
    return float(found.x[0] * size), float(found.x[1] * size / reach)


def _spread(taken: Floats, took_s: Floats, call_s: float, service_s: float) -> float:
    """The standard deviation of a work of one tuple, in parts of its mean: one of n tuples varies by a root of n less."""
    if len(taken) < 2 or not call_s + service_s:
        return 0.0
    off = took_s / (call_s + service_s * taken) - 1
    # A pause of the machine is no cost of a work.
    kept = off <= np.quantile(off, 0.98)
    return round(float(np.sqrt(np.mean(taken[kept] * off[kept] ** 2))), 3)


def fit_late(slow: dict[str, OperatorTimes], quick: dict[str, OperatorTimes], wait_s: float) -> float:
    """How much longer than asked for a wait takes: of the operator in the middle. No machine wakes a thread too early."""
    found = [
        (slow[name].service_s + slow[name].call_s) - (quick[name].service_s + quick[name].call_s) - wait_s
        for name in slow
        if slow[name].service_s >= wait_s / 2
    ]
    return round(max(0.0, float(np.median(found))), 7) if found else 0.0


def fit_machine(costs: Sequence[Costs], cores: int) -> Machine:
    """Costs of a work and a tuple in a host, and of a turn and a receipt in the driver."""
    from scipy.optimize import nnls

    of = np.array([[its.works, its.tuples] for its in costs], np.float64)
    around_s = np.array([its.around_s for its in costs])
    # Each stretch counts alike, however much was done in it.
    scale = np.maximum(around_s, 1e-9)
    work_s, tuple_s = nnls(of / scale[:, None], around_s / scale)[0]
    turn_s, receipt_s = nnls(np.array([[1.0, its.receipts] for its in costs]), np.array([its.turn_s for its in costs]))[
        0
    ]
    return Machine(
        cores=cores,
        turn_s=round(float(turn_s), 7),
        receipt_s=round(float(receipt_s), 7),
        work_s=round(float(work_s), 7),
        tuple_s=round(float(tuple_s), 9),
        hop_s=0.0,
    )


def with_more(known: dict[str, OperatorTimes], more: dict[str, OperatorTimes]) -> dict[str, OperatorTimes]:
    """The times of `known`, with the operators that only `more` has, and the shares of what goes to them."""
    both = {name: replace(its, shares={**more[name].shares, **its.shares}) for name, its in known.items()}
    return {**both, **{name: its for name, its in more.items() if name not in known}}
