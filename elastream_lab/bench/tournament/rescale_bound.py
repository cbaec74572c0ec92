"""A lower bound: the replica seconds of one who knows the trace and pays a price for every rescale.

    python -m elastream_lab.bench.tournament.rescale_bound TRACE[@SPEED] ...

One operator whose tuples are a fluid: what waits may never be more than came within the time that a tuple may take. Dynamic
programming over time, what waits and the replicas finds the cheapest sizes. There are no lanes, no turns and no chance in it,
and one operator has all of the time for itself; so no policy on the engine can be cheaper with as few rescales.
"""

import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elastream_lab.bench.tournament.play import TraceContest

Floats = npt.NDArray[np.float64]

STEP_S = 0.125
"""Decisions are this far apart, as those of the clairvoyant with a target of one second."""
GRAIN = 0.1
"""What waits is known to so many replica seconds; between them the cost is interpolated."""
LATE = 30.0
"""Cost of a replica second of work that is late at a step: it pays only where all replicas are too few."""
PRICES = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Replica seconds per rescale."""


@dataclass(frozen=True)
class Cheapest:
    """The cheapest sizes at a price."""

    replica_seconds: float
    rescales: int


def cheapest(work: Floats, price: float, *, most: int, limit_s: float = 1.0) -> Cheapest:
    """`work` is what has come by each step, in replica seconds; nothing has come by the first."""
    late_by = round(limit_s / STEP_S)
    may_wait = work - np.append(np.zeros(late_by), work)[: len(work)]
    waits: Floats = np.arange(0.0, max(1.0, float(may_wait.max())) + 2 * GRAIN, GRAIN)
    sizes, columns = np.arange(1, most + 1), np.arange(most)
    # The cost from a step on, by what waits (rows) and by the size until then (columns).
    cost = np.zeros((len(waits), most))
    choices: list[tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]] = []
    for step in range(len(work) - 1, 0, -1):
        left = np.maximum(0.0, waits[:, None] + work[step] - work[step - 1] - sizes * STEP_S)
        place = np.minimum(left, waits[-1]) / GRAIN
        below = np.minimum(place.astype(int), len(waits) - 2)
        share = place - below
        then = (1 - share) * cost[below, columns] + share * cost[below + 1, columns]
        keep = then + sizes * STEP_S + LATE * np.maximum(0.0, left - may_wait[step])
        best = keep.argmin(axis=1)
        change = keep[np.arange(len(waits)), best] + price
        choices.append((keep <= change[:, None], best))
        cost = np.minimum(keep, change[:, None])
    return _follow(work, waits, choices[::-1])


def _follow(work: Floats, waits: Floats, choices: list[tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]]) -> Cheapest:
    """Walk from the first step on; the first size is no rescale."""
    size, rescales, waiting, replica_seconds = int(choices[0][1][0]) + 1, 0, 0.0, 0.0
    for (keeps, best), came in zip(choices, np.diff(work), strict=True):
        row = min(round(waiting / GRAIN), len(waits) - 1)
        if not keeps[row, size - 1] and best[row] + 1 != size:
            size, rescales = int(best[row]) + 1, rescales + 1
        replica_seconds += size * STEP_S
        waiting = max(0.0, waiting + float(came) - size * STEP_S)
    return Cheapest(replica_seconds, rescales)


def main(traces: list[str], seconds: float = 200.0) -> int:
    contest = TraceContest(("psps",), tuple(traces), seconds=seconds)
    scenarios = {match.trace: match.scenario for match in contest.matches()}
    print("| trace | " + " | ".join(f"price {price:g}" for price in PRICES) + " |")
    print("| --- |" + " ---: |" * len(PRICES))
    for trace, scenario in scenarios.items():
        arrivals = scenario.arrivals()
        assert arrivals is not None
        work = arrivals.counts_at(np.arange(0.0, seconds + STEP_S / 2, STEP_S)) * contest.service_ms / 1e3
        found = [cheapest(work - work[0], price, most=contest.pool, limit_s=contest.latency_s) for price in PRICES]
        cells = (f"{f.replica_seconds / found[0].replica_seconds:.3f}, {f.rescales} rescales" for f in found)
        print(f"| {trace.rpartition('/')[2]} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
