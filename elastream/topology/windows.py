"""Windows over event time as keyed operators: tumbling, sliding and session. Rows of a key enter; a row per window leaves, once."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from elastream.errors import TopologyError

_CALL = re.compile(r"\s*(count|sum|min|max|mean)\s*\(\s*(\w*)\s*\)\s*")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

_LEAST_S, _MOST_S = 1e-6, 100 * 365.25 * 86_400
"""Times are kept in microseconds."""

MOST_WINDOWS = 1000
"""In which one tuple may be: each of them is changed by it."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Aggregate:
    """One column of the result, such as `sum(bytes)`."""

    name: str
    what: str
    column: str
    type: pa.DataType
    """Of the result."""

    def add(self, value: Any, row: Row) -> Any:
        """What is known of a window, with one row more. Nulls do not count, as in SQL."""
        if self.what == "count" and not self.column:
            return value + 1
        new = row[self.column]
        if new is None:
            return value
        if self.what == "count":
            return value + 1
        if self.what == "mean":
            return [value[0] + new, value[1] + 1.0]
        return self.merge(value, new)

    def merge(self, one: Any, other: Any) -> Any:
        """Of two windows that become one."""
        if self.what == "mean":
            return [one[0] + other[0], one[1] + other[1]]
        if one is None or other is None:
            return other if one is None else one
        if self.what in ("min", "max"):
            return min(one, other) if self.what == "min" else max(one, other)
        return one + other

    @property
    def nothing(self) -> Any:
        return {"count": 0, "mean": [0.0, 0.0]}.get(self.what)

    @property
    def kept_as(self) -> pa.DataType:
        return pa.list_(pa.float64()) if self.what == "mean" else self.type

    def result(self, value: Any) -> Any:
        if self.what == "mean":
            return value[0] / value[1] if value[1] else None
        return value


@dataclass(frozen=True)
class Windows:
    """The functions of a windowed operator. Lengths are microseconds; `gap_us` is that of sessions, 0 for the others."""

    key: tuple[str, ...]
    time: str
    length_us: int
    every_us: int
    gap_us: int
    aggregates: tuple[Aggregate, ...]

    @property
    def state(self) -> pa.Schema:
        kept = [pa.field(aggregate.name, aggregate.kept_as) for aggregate in self.aggregates]
        window = pa.struct([pa.field("start_us", pa.int64()), pa.field("end_us", pa.int64()), *kept])
        return pa.schema([pa.field("windows", pa.list_(window))])

    def schema(self, entering: pa.Schema) -> pa.Schema:
        times = [pa.field(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")]
        results = [pa.field(aggregate.name, aggregate.type) for aggregate in self.aggregates]
        return pa.schema([*(entering.field(name) for name in self.key), *times, *results])

    def add(self, key: Any, rows: list[Row], state: Any) -> list[Row]:
        """Rows of a key enter their windows; nothing leaves before the watermark has passed one."""
        for row in rows:
            if row[self.time] is None:
                raise ValueError(f"column {self.time!r} is null: when did it happen?")
            at_us = (row[self.time] - _EPOCH) // _MICROSECOND
            for start_us, end_us in self._windows(at_us):
                window, is_new = self._find(state, start_us, end_us)
                for aggregate in self.aggregates:
                    window[aggregate.name] = aggregate.add(window[aggregate.name], row)
                if is_new:
                    # A session that has grown is woken when it would have ended, and asks again then.
                    state.wake_at_event(end_us / 1e6)
        return []

    def close(self, key: Any, at_s: float, state: Any) -> Iterator[Row]:
        """The watermark has passed the end of a window."""
        at_us = round(at_s * 1e6)
        over = [window for window in state.windows or () if window["end_us"] <= at_us]
        state.windows = [window for window in state.windows or () if window["end_us"] > at_us]
        if self.gap_us and state.windows:
            state.wake_at_event(min(window["end_us"] for window in state.windows) / 1e6)
        keys = dict(zip(self.key, (key,) if len(self.key) == 1 else key, strict=True))
        for window in sorted(over, key=lambda window: window["start_us"]):
            times = {"window_start": _time(window["start_us"]), "window_end": _time(window["end_us"])}
            results = {aggregate.name: aggregate.result(window[aggregate.name]) for aggregate in self.aggregates}
            yield {**keys, **times, **results}
        if not state.windows:
            state.remove()

    def _windows(self, at_us: int) -> list[tuple[int, int]]:
        if self.gap_us:
            return [(at_us, at_us + self.gap_us)]
        start = at_us // self.every_us * self.every_us
        return [(s, s + self.length_us) for s in range(start, at_us - self.length_us, -self.every_us)]

    def _find(self, state: Any, start_us: int, end_us: int) -> tuple[Row, bool]:
        """The window of this time, and whether it is new; sessions that touch become one."""
        windows: list[Row] = state.windows or []
        if not self.gap_us:
            # The newest is the last, and mostly the one.
            for window in reversed(windows):
                if window["start_us"] == start_us:
                    return window, False
        touching = [w for w in windows if self.gap_us and w["start_us"] <= end_us and start_us <= w["end_us"]]
        found = {"start_us": start_us, "end_us": end_us, **{a.name: a.nothing for a in self.aggregates}}
        for window in touching:
            found["start_us"] = min(found["start_us"], window["start_us"])
            found["end_us"] = max(found["end_us"], window["end_us"])
            for aggregate in self.aggregates:
                found[aggregate.name] = aggregate.merge(found[aggregate.name], window[aggregate.name])
        state.windows = [*(w for w in windows if all(w is not other for other in touching)), found]
        return found, not touching


def windows_of(
    name: str,
    key: tuple[str, ...],
    time: str,
    entering: pa.Schema,
    *,
    every_s: float | None,
    length_s: float | None,
    session_s: float | None,
    aggregate: Mapping[str, str],
) -> Windows:
    """Checked: either `session_s`, or `every_s` and, for windows that overlap, `length_s`."""
    here = f"window {name!r}"
    if (every_s is None) == (session_s is None) or (session_s is not None and length_s is not None):
        raise TopologyError(f"{here}: give every_s=60, every_s=10 with length_s=60, or session_s=30")
    for word, seconds in (("every_s", every_s), ("length_s", length_s), ("session_s", session_s)):
        if seconds is not None and not seconds > 0:
            raise TopologyError(f"{here}: {word} must be more than 0, got {seconds}")
        if seconds is not None and not _LEAST_S <= seconds <= _MOST_S:
            raise TopologyError(
                f"{here}: {word} must be {_LEAST_S:.6f} seconds to {_MOST_S:.0f}, which are 100 years, got {seconds}"
            )
    every_us = round((every_s or 0.0) * 1e6)
    length_us = round(length_s * 1e6) if length_s is not None else every_us
    if length_us < every_us:
        raise TopologyError(
            f"{here}: length_s {length_s} is shorter than every_s {every_s}; some tuples would be in no window"
        )
    if (windows := -(-length_us // every_us) if every_us else 1) > MOST_WINDOWS:
        raise TopologyError(
            f"{here}: a tuple is in {MOST_WINDOWS} windows at most, and would be in {windows} of length_s {length_s} every_s {every_s}; "
            f"set every_s to {length_us / MOST_WINDOWS / 1e6:g} or more, or a shorter length_s"
        )
    if not aggregate:
        raise TopologyError(f"{here}: nothing is computed; give aggregate={{'n': 'count()'}}")
    parsed = tuple(_aggregate(here, result, call, entering) for result, call in aggregate.items())
    return Windows(key, time, length_us, every_us, round((session_s or 0.0) * 1e6), parsed)


def _aggregate(here: str, name: str, call: str, entering: pa.Schema) -> Aggregate:
    found = _CALL.fullmatch(call) if isinstance(call, str) else None
    if found is None or not name.isidentifier() or name in ("start_us", "end_us", "window_start", "window_end"):
        raise TopologyError(
            f"{here}: aggregate {name!r}: {call!r}; write it as 'count()', 'sum(bytes)', min, max or mean"
        )
    what, column = found[1], found[2]
    if what == "count":
        if column and column not in entering.names:
            raise TopologyError(f"{here}: {call}: no column {column!r}; there are {', '.join(entering.names)}")
        return Aggregate(name, what, column, pa.int64())
    if column not in entering.names:
        raise TopologyError(f"{here}: {call}: no column {column!r}; there are {', '.join(entering.names)}")
    kind = entering.field(column).type
    if what in ("sum", "mean") and not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TopologyError(f"{here}: {call}: {column!r} is {kind}, not a number")
    if what == "sum":
        kind = pa.int64() if pa.types.is_integer(kind) else pa.float64()
    return Aggregate(name, what, column, pa.float64() if what == "mean" else kind)


def _time(micros: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=micros)
