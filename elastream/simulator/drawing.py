"""Replicas drawn at random by how empty their queues are: the grouping that PSPS's authors published, as Storm runs it. Compiled.

Once a second the sender looks at the receive queue of every active replica, of which Storm has 1,024 places; what does not fit
waits beside it and is not seen. A replica weighs 101 less the hundredths of it that are full: from 1 to 101. Until the next look
replicas are drawn by these weights: a new one gets nothing yet, and what falls to one that is not active any more goes to the
first.
"""

import numpy as np

from elastream.simulator.compiled import compiled
from elastream.simulator.state import LOOKED_S, NOW, Fixed, Floats, Ints, Moving

QUEUE = 1024
"""Places of a replica's receive queue, Storm's `topology.executor.receive.buffer.size`."""
LOOKS_EVERY_S = 1.0


@compiled
def weigh_by_queue(weights: Floats, queued: Ints, active: int) -> None:
    """Weigh the active lanes of an operator by how empty their queues are now; the others weigh nothing."""
    for lane in range(len(weights)):
        weights[lane] = int(101.0 - 100.0 * min(1.0, queued[lane] / QUEUE)) if lane < active else 0


@compiled
def look_at_queues(fixed: Fixed, moving: Moving, target: int) -> None:
    """Weigh the lanes of an operator, if that was not done within the last second."""
    first, end, now_s = fixed.first[target], fixed.first[target + 1], moving.clock[NOW]
    if moving.weight[first] == 0.0 or now_s - moving.redirect[target, LOOKED_S] >= LOOKS_EVERY_S:
        moving.redirect[target, LOOKED_S] = now_s
        weigh_by_queue(moving.weight[first:end], moving.queued[first:end], moving.active[target])


@compiled
def lane_at(weights: Floats, active: int, part: float) -> int:
    """The lane at this part of all weights, from 0 to 1; the first where that lane is not active any more."""
    mark = part * weights.sum()
    for lane in range(active):
        mark -= weights[lane]
        if mark < 0.0:
            return lane
    return 0


@compiled
def drawn_counts(fixed: Fixed, moving: Moving, target: int, tuples: int, random: np.random.Generator) -> Ints:
    """How many of so many tuples fall to each active lane of an operator, each drawn by itself."""
    look_at_queues(fixed, moving, target)
    active = moving.active[target]
    weights = moving.weight[fixed.first[target] : fixed.first[target + 1]]
    counts = np.zeros(active, np.int64)
    for _ in range(tuples):
        counts[lane_at(weights, active, random.random())] += 1
    return counts
