"""The benchmarks of dataframe operators: how they are judged, and that they run. How fast things are is theirs to say."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from elastream.bench.cpu import cpu_s
from elastream.bench.dataframe import JUDGED, OTHERS, DataframeBench
from elastream.bench.frame_cost import EMPTY, FrameCost
from elastream.bench.state import StateBench, StateRescaled, measure_state


@pytest.mark.parametrize(("own", "met"), [(3.6, True), (3.7, False)])
def test_work_in_an_operator_may_cost_a_third_more_than_in_a_plain_query(own: float, met: bool) -> None:
    costs = {("elastream", EMPTY): 1.0, ("plain", EMPTY): 0.5, ("elastream", "same"): 1.5}
    for work in (*JUDGED, *OTHERS):
        costs |= {("elastream", work): own, ("plain", work): 2.5}
    measured = tuple(FrameCost(system, work, 1000.0, us, 0.2, 10) for (system, work), us in costs.items())
    bench = DataframeBench(measured, 2, 0.0)
    assert bench.met is met and bench.crossing == 0.5
    assert bench.ratio("windows") == pytest.approx((own - 1.0) / 2.0)
    assert json.loads(json.dumps(bench.to_json()))["ratios"]["pandas"] == bench.ratio("pandas")
    assert ("**no**" in bench.to_markdown()) is not met


@pytest.mark.parametrize(
    ("changed", "met"),
    [({}, True), ({"pause_ms": 15_001.0}, False), ({"is_whole": False}, False), ({"taken": 99}, False)],
)
def test_a_rescale_keeps_every_row_and_takes_no_more_than_fifteen_seconds(changed: dict[str, float], met: bool) -> None:
    its = {"keys": 10, "before": 4, "after": 8, "rows_before": 10, "rows_after": 10, "is_whole": True, "pause_ms": 9e3}
    rest = {"tick_ms": 200.0, "taken": 100, "entered": 100, "problems": 0}
    bench = StateBench(StateRescaled(**(its | rest | changed)), 2, 0.0)
    assert bench.met is met and ("met: **no**" in bench.to_markdown()) is not met


def test_a_state_is_rescaled_and_measured(spark: SparkSession, tmp_path: Path) -> None:
    before_s = cpu_s()
    found = measure_state(keys=3000, before=2, after=3)
    assert (found.before, found.after, found.rows_before, found.rows_after) == (2, 3, 3000, 3000)
    assert found.is_whole and found.taken == found.entered >= 3000 and found.problems == 0
    assert found.pause_ms > 0 and cpu_s() > before_s
