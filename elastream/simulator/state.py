"""The arrays that a simulation steps over: what never changes, and what every step changes.

All lanes of all operators stand in one row, an operator's beside one another. A head is a source or an operator: first the
sources, then the operators, both in topological order.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

EVEN, WEIGHTED, BUSY, SHORTEST, EVERY, REDIRECTED, MERGED, DRAWN = range(8)
"""How an operator's tuples are shared out: evenly, by the weights of lanes, to the lane that was least busy, to the one with
least in front of it, to every lane, to the lanes with most room while the load is out of range and evenly or by weights else,
at random by how empty queues were a moment ago."""

BUCKETS = 220
"""Buckets of `report.latency` that are counted: up to a day."""


class Fixed(NamedTuple):
    """Arrays that a step only reads."""

    first: Ints
    """Where each operator's lanes begin; one more at the end."""
    service_s: Floats
    """Mean service time of a tuple, of an operator with one replica on a node of speed 1."""
    bend: Floats
    """How much longer it takes for each replica more, in parts of it."""
    limit_s: Floats
    """Seconds between two tuples that all replicas together serve at least; 0: no limit."""
    cpu: Floats
    """The share of the service that needs a core; the rest is waiting."""
    spread: Floats
    """Standard deviation of a service time, in parts of its mean."""
    call_s: Floats
    """Seconds that serving takes once per work, besides its tuples: an engine that works in batches has works."""
    call_cpu_s: Floats
    """Seconds of it that need a core."""
    cpu_share: Floats
    """The share of a work of one tuple that needs a core."""
    routing: Ints
    edge_first: Ints
    """Where each head's edges begin; one more at the end."""
    edge_to: Ints
    edge_share: Floats
    """Tuples that go over the edge for each one processed by its head."""
    splits: Flags
    """Per head, whether every tuple goes over exactly one of several edges: their shares are 1 together."""
    source_service_s: Floats
    source_call_s: Floats
    due_first: Ints
    """Where each source's arrivals begin; one more at the end."""
    due_ends: Floats
    due_counts: Floats
    all_ends: Floats
    """The arrivals of all sources together."""
    all_counts: Floats
    entry: Flags
    """Operators that get tuples from a source."""
    reach: Floats
    """Tuples that reach each head for each one that enters at any source."""
    ends: Floats
    """Tuples that finish at each head for each one that it processes."""
    node_cores: Floats
    node_speed: Floats


class Limits(NamedTuple):
    """Bounds on what waits; 0: none."""

    q_size: int
    drops: bool
    """True: a full lane drops what does not fit; else senders wait."""
    t_out_s: float
    in_flight: int = 0
    """Of a system like Storm: sources hold tuples back while so many are in the topology."""
    spout_size: int = 0
    """The most tuples that a source holds back; what comes then is dropped."""
    first_acks: bool = False
    """The first operator acknowledges a tuple: then it is not in flight any more, and its latency ends."""


class Moving(NamedTuple):
    """Arrays that a step changes. Counters only grow: whoever wants an interval takes differences."""

    clock: Floats
    """See NOW and the following."""
    queued: Ints
    active: Ints
    """Replicas of each operator by which tuples are routed."""
    asked: Ints
    """The same from the next plan on."""
    ready_s: Floats
    """From when on each lane serves: a new container takes its time to start."""
    weight: Floats
    """Of each lane, where tuples are routed by weights."""
    phase: Floats
    """Where each operator's next whole tuples begin, so that rounding favours no lane."""
    carry: Floats
    """Per edge, the part of a tuple that is left over."""
    credit: Floats
    """Per lane, the seconds of service that are left over."""
    expected_s: Floats
    """The driver's estimate of a service."""
    busy_before: Floats
    """Per lane, the share of the last interval that it was busy, and what it was sent since."""
    redirect: Floats
    """Per operator, see LENGTH and the following."""
    next_of: Ints
    """Per source, the number of the next tuple to read."""
    refused: Ints
    """Per source, tuples that were dropped because it held back as many as it can."""
    sent_s: Floats
    """When each tuple left its source, by its number, where sources hold tuples back; else empty: when it was due."""
    node: Ints
    """Where each lane is, or was last."""
    node_up: Flags
    received: Ints
    processed: Ints
    dropped: Ints
    busy_s: Floats
    over_edge: Ints
    read: Ints
    entered: Ints
    """Per head."""
    finished: Ints
    lost: Floats
    """Per head, tuples dropped at it or on the way to it."""
    waits: Floats
    """Latencies by bucket."""
    ticks_s: Floats
    """The lengths of the last turns or steps; see TICKS."""


NOW, TICKS, WAIT_SUM_S, LONGEST_WAIT_S, OVER = range(5)
CLOCKS = 5

LENGTH, LOOKED_S, UNEVEN, TIMES, FOUND_LB, FOUND_MOST, LOOKS_S = range(7)
"""In `Moving.redirect`: tuples that count as a full queue, when the load was looked at last, whether it is out of range, how
often that began, the load balance and the fullest lane that were found then, and the time between two looks."""
REDIRECTS = 7
