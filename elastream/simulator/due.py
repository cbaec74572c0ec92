"""When tuples are due and when they leave their sources: counts by second, and seconds by count. Compiled."""

import math

from elastream.simulator.compiled import compiled
from elastream.simulator.state import Fixed, Floats, Moving


@compiled
def first_above(values: Floats, value: float) -> int:
    """Where the first of these rising values is that is above this one; behind them all when none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def first_reaching(values: Floats, value: float) -> int:
    """Where the first of these rising values is that is at least this one; behind them all when none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] >= value:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def due_by(ends: Floats, counts: Floats, second: float) -> int:
    """How many tuples are due at this second or before."""
    if second >= ends[-1]:
        return int(counts[-1] + 1e-9)
    if second <= ends[0]:
        return 0
    step = first_above(ends, second)
    share = (second - ends[step - 1]) / (ends[step] - ends[step - 1])
    return int(counts[step - 1] + share * (counts[step] - counts[step - 1]) + 1e-9)


@compiled
def due_s(ends: Floats, counts: Floats, number: float) -> float:
    """When the count of tuples reaches this number."""
    if number <= counts[0]:
        return float(ends[0])
    step = min(first_reaching(counts, number), len(counts) - 1)
    grows = counts[step] - counts[step - 1]
    if grows <= 0:
        return float(ends[step])
    return float(ends[step - 1] + min(1.0, (number - counts[step - 1]) / grows) * (ends[step] - ends[step - 1]))


@compiled
def source_due_by(fixed: Fixed, source: int, second: float) -> int:
    a, b = fixed.due_first[source], fixed.due_first[source + 1]
    return due_by(fixed.due_ends[a:b], fixed.due_counts[a:b], second)


@compiled
def next_due_s(fixed: Fixed, moving: Moving) -> float:
    """When the next tuple of any source is due; infinity when there is none."""
    soonest = math.inf
    for source in range(len(moving.next_of)):
        a, b = fixed.due_first[source], fixed.due_first[source + 1]
        if moving.next_of[source] < int(fixed.due_counts[b - 1] + 1e-9):
            second = due_s(fixed.due_ends[a:b], fixed.due_counts[a:b], moving.next_of[source] + 1.0)
            soonest = min(soonest, second)
    return soonest


@compiled
def sent_by(fixed: Fixed, moving: Moving, second: float) -> int:
    """How many tuples had left their sources at this second."""
    if not len(moving.sent_s):
        return due_by(fixed.all_ends, fixed.all_counts, second)
    return first_above(moving.sent_s[: moving.read.sum()], second)


@compiled
def sent_at(fixed: Fixed, moving: Moving, number: float) -> float:
    """When the tuple of this number, from 1 on, left its source."""
    if not len(moving.sent_s):
        return due_s(fixed.all_ends, fixed.all_counts, number)
    return float(moving.sent_s[min(max(math.ceil(number), 1), moving.read.sum()) - 1])
