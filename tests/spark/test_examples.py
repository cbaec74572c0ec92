"""The examples do what they say. Those that need a broker or a cluster are run where these are."""

import re
from pathlib import Path

import pytest
from flows import said_by_example
from pyspark.sql import SparkSession


def test_the_smallest_squares_every_number(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by_example("01_minimal.py", [], capsys)
    assert "[{'id': 1, 'square': 1}, {'id': 2, 'square': 4}, {'id': 3, 'square': 9}]" in said
    assert "read 2,000 = finished 2,000 + dropped 0 + dead letters 0 + queued 0; duplicates 0" in said


def test_dataframes_count_each_click_once_while_their_state_is_rescaled(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_by_example("03_dataframe_and_state.py", [str(tmp_path)], capsys)
    # The last click is at second 9,999, the watermark an hour before it: ten windows are final, a tenth of the clicks is left out.
    assert "40 counts of 5400 clicks are final" in said
    assert "state: 2 -> 4 partitions" in said and "whole" in said
    assert "read 10,000" in said and "dropped 0 + dead letters 0 + queued 0" in said


def test_a_policy_of_ones_own_grows_with_the_load_and_shrinks_after_it(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_by_example("04_your_own_policy.py", [], capsys)
    sizes = [(int(a), int(b)) for a, b in re.findall(r"^look_up: (\d) -> (\d)  \d+ wait, ", said, re.MULTILINE)]
    # 500 a second at 5 ms each keep two and a half replicas busy all the time.
    assert max(after for _, after in sizes) >= 3
    assert any(after < before for before, after in sizes)
    assert "read 1,625 = finished 1,625 + dropped 0 + dead letters 0 + queued 0; duplicates 0" in said


def test_every_visit_is_counted_while_the_replicas_change(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_by_example("06_state_per_key.py", [], capsys)
    # Every other click is of user 0, and of the others every thousandth.
    assert "1000 users, 20000 visits; most: {'user': 0, 'n': 10010}" in said
    assert "of 20000 clicks" in said and "visits: 112 key groups moved to 8 replicas; in order" in said
    assert "read 20,000 + created" in said and "dropped 0 + dead letters 0 + queued 0; duplicates 0" in said
