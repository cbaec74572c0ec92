"""Keys are woken when their time has come: what `on_timer` makes of them leaves together with what it changed, or neither does.

A key on which it raises is set aside, is not woken again for that time, and is otherwise as it was.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from elastream.engine.worker.dead_letters import Failure
from elastream.engine.worker.functions import Made, NotDeclared, columns_of
from elastream.state.host_state import StateChanges
from elastream.state.records import KeyRecord, RecordCodec
from elastream.state.store import CLOCK, WATERMARK
from elastream.topology import Operator, stored
from elastream.topology.schemas import DUE_TYPE
from elastream.user_code import describe


class DueKeys(NamedTuple):
    """Keys of some groups whose time has come, by the clock or by the watermark."""

    groups: tuple[int, ...]
    clock_s: float
    watermark_s: float | None
    most: int | None = None
    """So many at most, the earliest first; None: all."""
    bury: str = ""
    """Not empty: do not wake them, but put them into the dead letters with this error."""


def wake_keys(operator: Operator, state: StateChanges, keys: DueKeys) -> Made:
    """Call `on_timer` of keys whose time has come, the earliest first."""
    until_s, bury = (keys.clock_s, keys.watermark_s), keys.bury
    codec, now_s = state.codec, until_s[0]
    out: list[Any] = []
    failures: list[Failure] = []
    woken = 0
    for at_s, kind, place in _due(state, keys.groups, until_s):
        if woken == keys.most:
            break
        before = state.get_many([place])[0]
        if before is not None and codec.state.ttl_s is not None and codec.is_expired_bytes(before, now_s):
            # It is forgotten, and with it when it was to be woken.
            state.update({place: None})
            continue
        record = None if before is None else codec.record_of(before, now_s)
        if record is None or not _take_timer(record, kind, at_s):
            # It was changed by this work: it is not to be woken then any more.
            continue
        woken += 1
        # A key that fails is not woken again, and otherwise as it was.
        made, after = list[Any](), codec.bytes_of(record, now_s)
        key = codec.key_of(place[1])
        if bury:
            failures.append(Failure(_key_row(codec, key, now_s), bury, timer=True))
        else:
            try:
                made, after = _call_timer(operator, codec, key, at_s, record, now_s)
            except BaseException as error:
                wrong = isinstance(error, NotDeclared)
                text = str(error) if wrong else describe(error)
                failures.append(Failure(_key_row(codec, key, now_s), text, wrong, timer=True))
        out += made
        if after != before:
            state.update({place: after})
    if not out:
        return Made([], failures)
    due_us = pa.array([int(now_s * 1e6)] * len(out)).cast(DUE_TYPE)
    return Made(
        [pa.RecordBatch.from_arrays([*columns_of(operator, out), due_us], schema=stored(operator.schema))], failures
    )


def _due(
    state: StateChanges, groups: Sequence[int], until_s: tuple[float, float | None]
) -> list[tuple[float, int, tuple[int, bytes]]]:
    """When each key was to be woken, by which of the two, and the key."""
    return sorted(
        (at_s, kind, (group, key))
        for kind, end_s in zip((CLOCK, WATERMARK), until_s, strict=True)
        for at_s, group, key in (state.due(kind, groups, end_s) if end_s is not None else ())
    )


def _take_timer(record: KeyRecord, kind: int, at_s: float) -> bool:
    """Remove a timer from a record; False when it is not there."""
    timers = (record._timers if kind == CLOCK else record._event_timers) or []
    left = [other for other in timers if round(other * 1e6) != round(at_s * 1e6)]
    if kind == CLOCK:
        record._timers = left or None
    else:
        record._event_timers = left or None
    return len(left) < len(timers)


def _call_timer(
    operator: Operator, codec: RecordCodec, key: tuple[Any, ...], at_s: float, record: KeyRecord, now_s: float
) -> tuple[list[Any], bytes | None]:
    assert operator.keyed is not None and operator.keyed.on_timer is not None
    made = list(operator.keyed.on_timer(key[0] if len(key) == 1 else key, at_s, record) or ())
    columns_of(operator, made)
    return made, codec.bytes_of(record, now_s)


def _key_row(codec: RecordCodec, key: tuple[Any, ...], now_s: float) -> pa.RecordBatch:
    """A key in place of the tuple that a dead letter has."""
    columns = [pa.array([value], field.type) for value, field in zip(key, codec.key_schema, strict=True)]
    due = pa.array([int(now_s * 1e6)]).cast(DUE_TYPE)
    return pa.RecordBatch.from_arrays([*columns, due], schema=stored(codec.key_schema))
