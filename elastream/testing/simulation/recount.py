"""The results of a drained run, recounted from the tuples of its sources."""

from collections import Counter
from typing import Any

from elastream.lanes.segments import LaneId
from elastream.testing.simulation.model import Model, Violation, columns_in, key_in
from elastream.testing.simulation.workload import SHIFT, Workload, at_us, key_of

Deliveries = dict[str, list[dict[str, Any]]]

HEADS = ("in", "op")
"""How the names of sources and of the operators behind them begin."""


def check_results(workload: Workload, model: Model, deliveries: Deliveries) -> None:
    """Every tuple has reached each branch once, and states, windows and timers are right."""
    for lane, queue in model.lanes.items():
        if queue and lane != LaneId("dead-letters", 0):
            raise Violation(f"at the end {len(queue)} rows wait in {lane}")
    before = Counter[Any]()
    for name, ids in model.buried.items():
        if name.startswith(HEADS):
            before.update(ids)
    expected = Counter({identity: 1 for identity, _ in workload.expected()})
    allowed = {identity for feed in workload.feeds for identity in (*feed.failing, *feed.fatal)}
    innocent = Counter({identity: count for identity, count in before.items() if identity not in allowed})
    for branch in workload.branches:
        came = model.came[branch]
        if came - expected:
            raise Violation(f"{branch}: {_some(came - expected)} came more often than they were made")
        missing = expected - came
        dropped = sum(counts.overflowed for counts in model.replica.totals.values())
        if sum(missing.values()) > sum(innocent.values()) * 3 + dropped * 3:
            raise Violation(
                f"{branch}: {_some(missing)} never came; {sum(innocent.values())} are dead letters, {dropped} were dropped"
            )
    seen: dict[str, Counter[Any]] = {}
    for identity, rows in deliveries.items():
        sink = identity.split("-")[1]
        seen.setdefault(sink, Counter()).update(_key(row) for row in rows)
    for sink, ids in seen.items():
        if ids != model.went[sink] + model.buried[sink] and not model.buried[sink]:
            raise Violation(f"sink {sink}: got {_some(ids - model.went[sink])} more often than it consumed them")
    _check_count(workload, model)
    _check_timers(workload, model)
    _check_windows(workload, model)


def _check_count(workload: Workload, model: Model) -> None:
    target = "behind" if workload.behind_count else "counted"
    served, came = model.went["count"], model.came[target]
    if workload.exact and served != came:
        raise Violation(f"count has served {sum(served.values())} rows, and {sum(came.values())} came out of it")


def _check_timers(workload: Workload, model: Model) -> None:
    """What keys gave when they were woken, and what they still hold back, is what came."""
    if "timer" not in workload.branches or not workload.exact:
        return
    given: Counter[Any] = Counter()
    for (key, rows), times in model.came["woken"].items():
        given[key] += rows * times
    for (operator, _), records in model.records.items():
        if operator == "timer":
            for key, record in records.items():
                given[key_in(key)] += columns_in(record)[1]
    expected = Counter({key: count for key, (count, _) in model.keys["timer"].items()})
    if given != expected and not model.buried["timer"]:
        key = next(key for key in sorted({*given, *expected}) if given[key] != expected[key])
        raise Violation(f"timer: key {key} has given or holds {given[key]} tuples, and {expected[key]} came")


def _check_windows(workload: Workload, model: Model) -> None:
    """Every window of every key, once and with all its tuples."""
    if "window" not in workload.branches or not workload.exact:
        return
    every_us = round(workload.every_s * 1e6)
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for identity, times in model.went["window"].items():
        feed = workload.feeds[identity // SHIFT]
        source = identity // 10 * 10
        start = at_us(source, feed.per_s, feed.jitter_s) // every_us * every_us
        place = key_of(source, workload.keys), start
        count, total = expected.get(place, (0, 0))
        expected[place] = count + times, total + identity * times
    windows: dict[tuple[int, int], tuple[int, int]] = {}
    for (key, begin, _, count, total), times in model.came["windows"].items():
        place = key, round(begin.timestamp() * 1e6)
        if place in windows or times > 1:
            raise Violation(f"window: {place} was given twice")
        windows[place] = count, total
    if windows != expected and not model.buried["window"]:
        place = next(place for place in sorted({*windows, *expected}) if windows.get(place) != expected.get(place))
        raise Violation(f"window: {place} has {windows.get(place)}, recounted {expected.get(place)}")


def _key(row: dict[str, Any]) -> Any:
    return row["id"] if "id" in row else tuple(row.values())


def _some(ids: Counter[Any]) -> str:
    return f"{sum(ids.values())} rows ({', '.join(map(str, sorted(ids)[:3]))} ...)"
