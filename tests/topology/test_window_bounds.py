"""Windows that cannot be: each is refused with one line when it is declared."""

import math
from typing import Any

import pyarrow as pa
import pytest

from elastream import Topology, sources
from elastream.errors import TopologyError
from elastream.workload import constant


def declare(unit: str = "us", **how: Any) -> None:
    columns = pa.schema([pa.field("key", pa.int64()), pa.field("at", pa.timestamp(unit, "UTC"))])
    flow = Topology("test")
    flow.source("in", sources.replay(constant(1, 1), columns, lambda numbers: {}))
    flow.key_by("key", after="in").window("w", time="at", aggregate={"n": "count()"}, **how)
    flow.output("out", after="w").topology.build()


def said_of(unit: str = "us", **how: Any) -> str:
    with pytest.raises(TopologyError) as caught:
        declare(unit, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("word", ["every_s", "session_s"])
@pytest.mark.parametrize("seconds", [math.inf, 1e-9, 1e18])
def test_lengths_that_microseconds_cannot_hold_are_refused(word: str, seconds: float) -> None:
    wanted = f"must be 0.000001 seconds to 3155760000, which are 100 years, got {seconds}"
    assert f"{word} {wanted}" in said_of("us", **{word: seconds})
    if word == "every_s":
        assert f"length_s {wanted}" in said_of(every_s=1.0, length_s=seconds)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_a_lateness_that_is_no_time_is_refused(seconds: float) -> None:
    assert f"lateness_s must be 0 or more, and needs event_time, got {seconds}" in said_of(
        every_s=1.0, lateness_s=seconds
    )


def test_a_tuple_is_in_a_thousand_windows_at_most() -> None:
    assert (
        "a tuple is in 1000 windows at most, and would be in 30000 of length_s 30 every_s 0.001; set every_s to 0.03"
        in said_of(every_s=0.001, length_s=30)
    )
    declare(every_s=0.03, length_s=30.0)
    assert "would be in 1001" in said_of(every_s=0.03, length_s=30.0 + 0.01)


@pytest.mark.parametrize(("unit", "whole", "broken"), [("s", 2.0, 0.5), ("ms", 0.25, 0.0005)])
def test_a_lateness_that_the_column_cannot_hold_is_refused(unit: str, whole: float, broken: float) -> None:
    declare(unit, every_s=1.0, lateness_s=whole)
    said = said_of(unit, every_s=1.0, lateness_s=broken)
    assert f"event_time 'at' is timestamp[{unit}, tz=UTC], so lateness_s must be whole {unit}, got {broken}" in said
    declare("us", every_s=1.0, lateness_s=broken)
