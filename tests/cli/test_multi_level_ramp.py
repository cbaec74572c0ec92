"""The ramp that makes a table: the cheapest configuration of each level of load (algorithm 1)."""

import pytest
from multi_level_looks import said, seen

from elastream.capacity.ramp import Benchmark, Ramp, Seen, outcome
from elastream.errors import SettingError
from elastream.policies.multi_level.table import Configuration, Table, merged


def test_a_ramp_has_levels_and_a_table_of_what_carried_them() -> None:
    ramp = Ramp(2000, 120, 8000)
    assert ramp.levels == [2000, 4000, 6000, 8000] and ramp.arrivals().seconds == 480
    one, two = Configuration({"parse": 1}), Configuration({"parse": 2})
    looks = [Seen(2000, one, 1.0, ""), Seen(4000, one, 1.0, ""), Seen(6000, one, 0.8, "sick"), Seen(8000, two, 1.0, "")]
    made = outcome("line", ramp, looks)
    assert made.table == Table("line", merged("line", [(4000, one), (8000, two)], 0.9).rows)
    assert made.remarks == (
        "6,000/s: still not well after 120 s (sick); it has what carried the next level, or hold levels longer",
    )


def test_levels_that_nothing_carried_are_not_in_the_table() -> None:
    one = Configuration({"parse": 1})
    made = outcome("line", Ramp(2000, 120, 4000), [Seen(2000, one, 1.0, ""), Seen(4000, one, 0.5, "sick")])
    assert [row.up_to for row in made.table.rows] == [2000]
    assert "the table ends below it" in made.remarks[0]
    with pytest.raises(SettingError, match=r"^ramp: 2,000/s"):
        outcome("line", Ramp(2000, 120, 2000), [Seen(2000, one, 0.5, "sick")])


def test_the_benchmark_remembers_what_it_saw() -> None:
    benchmark = Benchmark(Ramp(2000, 40, 6000))
    benchmark.propose(seen(2000, at_s=10))
    proposal = benchmark.propose(seen(6000, at_s=20, served=0.8))
    assert said(proposal) == {"parse": 2}
    assert [(round(one.per_s), bool(one.problem), bool(one.reason)) for one in benchmark.seen] == [
        (2000, False, False),
        (6000, True, True),
    ]
