"""The benchmarks of dataframe operators: how they are judged, and that they run. How fast things are is theirs to say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from elastream_lab.bench.common.cpu import cpu_s
from elastream_lab.bench.common.document import document_of
from elastream_lab.bench.connectors.dataframe import IDLE, TITLES, DataframeBench
from elastream_lab.bench.connectors.frame_cost import LANES, FrameCost
from elastream_lab.bench.connectors.state import StateBench, StateRescaled, measure_state


@pytest.mark.parametrize(
    ("own", "plain", "met"), [(224, 180, True), (225, 180, False), (200, 100, False), (110, 180, False)]
)
def test_work_in_an_operator_may_cost_a_third_more_than_in_a_plain_query(own: int, plain: int, met: bool) -> None:
    costs = {("elastream", LANES): 60}
    for work in IDLE:
        costs |= {("elastream", work): 120, ("plain", work): 100}
    for work in TITLES:
        costs |= {("elastream", work): own, ("plain", work): plain}
    measured = tuple(FrameCost(system, work, cpu_ms, 10) for (system, work), cpu_ms in costs.items())
    bench = DataframeBench(measured, 10_000, 2, 0.0)
    assert bench.met is met and bench.crossing == 60
    assert ("**no**" in bench.to_markdown()) is not met
    assert json.loads(json.dumps(document_of(bench), allow_nan=False))["met"] is met


@pytest.mark.parametrize(
    ("changed", "met"),
    [({}, True), ({"pause_ms": 15_001.0}, False), ({"is_whole": False}, False), ({"taken": 99}, False)],
)
def test_a_rescale_keeps_every_row_and_takes_no_more_than_fifteen_seconds(changed: dict[str, Any], met: bool) -> None:
    rescaled = StateRescaled(
        10, 4, 8, 10, 10, is_whole=True, pause_ms=9e3, tick_ms=200.0, taken=100, entered=100, problems=0
    )
    bench = StateBench(replace(rescaled, **changed), 2, 0.0)
    assert bench.met is met and ("met: **no**" in bench.to_markdown()) is not met


def test_a_state_is_rescaled_and_measured(spark: SparkSession, tmp_path: Path) -> None:
    before_s = cpu_s()
    found = measure_state(keys=3000, before=2, after=3)
    assert (found.before, found.after, found.rows_before, found.rows_after) == (2, 3, 3000, 3000)
    assert found.is_whole and found.taken == found.entered >= 3000 and found.problems == 0
    assert found.pause_ms > 0 and cpu_s() > before_s
