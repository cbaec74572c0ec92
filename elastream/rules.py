"""The numbers by which works are sized. Pure functions that the engine and the simulator both call, so that they cannot drift apart."""

from collections.abc import Sequence

PACE_S = 0.02
"""A source with little to make makes it at most this often."""

LANE_PACE_S = PACE_S / 2
"""A lane with little to do gets work at most this often: sooner than its source, or it would run behind by a pace of its own."""

MOST_ROWS = 500_000
"""No work takes more tuples of one lane than this, however fast its operator is."""

MOST_BYTES = 64 << 20
"""Nor more bytes than this: a host holds them in memory."""

FIRST_TRY = 64
"""Tuples for a lane whose operator has never been timed: the clock is looked at after the first of them."""

FIRST_DELIVERY = 16
"""The same for a sink, whose rows the clock does not cut."""

FIRST_INTAKE = 10_000
"""The same for a replay."""

FIRST_WRITE = 10_000
"""The same where Spark serves: a job for few tuples takes as long as one for many, which says nothing of a tuple."""

SEEN = 64
"""An estimate is a mean over about so many tuples, the newest."""

TURN_SHARE = 0.25
"""The share of a core that the driver's turns may take."""

WORTH = 20.0
"""A work of a busy lane lasts this many times as long as the turn that hands out the next."""

COMPUTING_SHARE = 0.5
"""An operator that uses a core for this share of its time computes; the others wait."""

DEPTH = 2
"""Computing works that a host has at most: one that runs, one that is there when it ends."""

MOST_WAITING = 256
"""Works that wait side by side in one host."""

CHUNK_S = 0.02
"""How long a chunk of tuples should take: a work's clock is looked at after each."""

OVERRUN = 1.5
"""A work may exceed the time it was planned for by this factor before the clock ends it."""

SHARED_S = 0.002
"""Lanes of one computing operator with less work than this share one."""

MOST_SHARED = 16

PORTION_KEYS = 20_000
"""Keys whose state is learned or written in one work, about."""

MOST_STATE_TASKS = 2
"""Works that copy states or write them whole, in one host at a time."""

BETWEEN_WHOLES_S = 0.25
"""Between two works that write key groups of one lane whole: it stands still meanwhile."""

MOST_CHANGES = 1024
"""Changes in the log of an operator's state, before key groups are written whole; rows likewise, unless there are more keys."""

LEAST_ROWS = 50_000

LB_MAX, LR_MAX = 0.3, 0.99
"""Tuples are redirected when the load balance of an operator's lanes, or the load ratio of one, is above this (Dr-Stream, table 3)."""

CALM = 0.8
"""Tuples that are redirected are dealt out evenly again when both are below this part of their bounds: at a bound they would be
redirected and dealt out in turn with every look."""

FULL_S = 1.0
"""A queue without a bound is full when a replica needs longer than this to serve it: its load ratio is 1."""

REDIRECT_S = 0.25
"""Between two looks at whether tuples must be redirected."""

IDLE_S = 0.5
"""With nothing to do, a turn still happens this often."""

LONGEST_REST_S = 0.1
"""The driver rests no longer than this between two turns."""


def first_size(least: int, most: int, start: int, asked: int | None) -> int:
    """With how many replicas an operator begins: as the topology says, or as the policy asks, within its limits."""
    return start if asked is None else min(max(asked, least), most)


def budget(least_s: float, most_s: float, turn_s: float) -> float:
    """How long a work may take: the slower the driver or the storage, the longer, so that replicas do not stand idle."""
    return min(max(least_s, WORTH * turn_s), most_s)


def turn_cost(known_s: float, new_s: float) -> float:
    """What a turn costs, after one more was measured. One that was held up (by a collection of garbage, say) counts little."""
    return known_s + 0.1 * (min(new_s, 4.0 * known_s + 0.001) - known_s)


def quota(service_s: float, budget_s: float, first: int) -> int:
    """How many tuples fit into the budget; `first` when the operator has never been timed, which is a time below 0."""
    if service_s < 0.0:
        return first
    return int(min(max(1.0, budget_s / max(service_s, 1e-9)), float(MOST_ROWS)))


def due_s(rows: int, service_s: float, given_s: float, now_s: float, pace_s: float) -> float:
    """When a lane gets its next work: now when there is enough to do, else a pace after its last one."""
    if rows * max(service_s, 0.0) >= pace_s:
        return now_s
    return max(now_s, given_s + pace_s)


def weight(taken: int, seen: float) -> float:
    """How much a new measurement of `taken` tuples counts against all before it."""
    return taken / (taken + min(seen, SEEN)) if taken else 0.0


def rest(turn_s: float) -> float:
    """How long the driver rests after a turn, so that turns take no more than their share of a core."""
    return min(turn_s * (1.0 / TURN_SHARE - 1.0), LONGEST_REST_S)


def full_queue(q_size: int | None, service_s: float) -> float:
    """How many tuples in front of a replica count as a full queue: its bound, or what it serves in a second; 0: not known."""
    if q_size is not None:
        return float(q_size)
    return FULL_S / service_s if service_s > 0.0 else 0.0


def load_ratio(queued: float, length: float) -> float:
    """The part of a queue that is full; above 1 it is overloaded (Dr-Stream, equation 5)."""
    return queued / length


def load_balance(ratios: Sequence[float]) -> float:
    """The mean distance of load ratios from their mean; 0 is even (Dr-Stream, equation 6)."""
    if not ratios:
        return 0.0
    mean = sum(ratios) / len(ratios)
    return sum(abs(ratio - mean) for ratio in ratios) / len(ratios)


def out_of_range(lb: float, most: float, redirecting: bool = False) -> bool:
    """True when the load is so uneven, or a queue so full, that tuples are redirected, or go on to be (Dr-Stream, equation 11)."""
    part = CALM if redirecting else 1.0
    return lb > part * LB_MAX or most > part * LR_MAX


def why_out_of_range(lb: float, most: float) -> str:
    """The same in words."""
    if lb > LB_MAX:
        return f"lb {lb:.2f} is above {LB_MAX:.2f}"
    return f"a load ratio of {most:.2f} is above {LR_MAX:.2f}"


def compacts(changes: int, rows: int, keys: int) -> bool:
    """True when the log of an operator's state is so long that its oldest key groups shall be written whole."""
    return changes > MOST_CHANGES or rows > max(LEAST_ROWS, keys)


def shares_work(rows: int, service_s: float) -> bool:
    """True for a lane with so little work that it shares one with other lanes of its operator."""
    return 0.0 <= rows * service_s < SHARED_S


def fits(free: int, lanes: int, fan_out: float, senders: int) -> int:
    """How many tuples a sender may take when each of the lanes behind it has room for `free`.

    A tuple of which more come than a lane may hold must pass all the same, or nothing ever would.
    """
    found = int(free * lanes / fan_out)
    return 1 if found == 0 and free > 0 and senders == 0 else found
