"""The benchmark of keyed state: how it is judged, and that it runs. How fast things are is its own to say."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from elastream_lab.bench.common.document import document_of
from elastream_lab.bench.keyed.command import KeyedBench
from elastream_lab.bench.keyed.runs import KeyedStory, Rate, Recovery, Restarted, measure_keyed_story

GOOD = KeyedBench(
    (
        Rate("keyed", 20_000, 20_000, 30, 60),
        Rate("without state", 20_000, 20_000, 20, 30),
        Rate("spark", 20_000, 20_000, 500, 900),
    ),
    KeyedStory(1000, 20_000, 20_000, 60, 96, 48, 500, 40, 300, True, 90, 16, 10**6, 5, 5, 0),
    (Recovery(True, 1000, 10, 0.5, 0.3, True), Recovery(False, 1000, 10, 1.5, 1.3, True)),
    Restarted(1000, 4.0),
    2,
    0.0,
)


def changed(**what: Any) -> KeyedBench:
    return replace(GOOD, **what)


@pytest.mark.parametrize(
    ("bench", "met"),
    [
        (GOOD, True),
        (changed(rates=(replace(GOOD.rates[0], finished_per_s=15_000), *GOOD.rates[1:])), False),
        (changed(rates=(replace(GOOD.rates[0], latency_p95_ms=300), *GOOD.rates[1:])), False),
        (changed(story=replace(GOOD.story, waited_ms=101)), False),
        (changed(story=replace(GOOD.story, same=False)), False),
        (changed(story=replace(GOOD.story, counted=4)), False),
        (changed(story=replace(GOOD.story, memory_per_key=97)), False),
        (changed(recoveries=(replace(GOOD.recoveries[0], longest_s=1.1), GOOD.recoveries[1])), False),
        (changed(recoveries=(GOOD.recoveries[0], replace(GOOD.recoveries[1], same=False))), False),
        (changed(restarted=Restarted(1000, 11.0)), False),
    ],
)
def test_every_goal_can_be_missed(bench: KeyedBench, met: bool) -> None:
    assert bench.met is met
    assert ("| **no** |" in bench.to_markdown()) is not met
    assert json.loads(json.dumps(document_of(bench)))["met"] is met


def test_a_story_is_told_from_a_run(spark: SparkSession) -> None:
    found = measure_keyed_story(keys=500, offered_per_s=2000.0, fill_s=1.0, seconds=1.0)
    assert found.keys == 500 and found.counted == found.entered == int(2000 * 7.25) and found.problems == 0
    assert found.same and found.moved_groups == 96 and found.latency_p95_ms > 0 and found.disk_bytes > 0
