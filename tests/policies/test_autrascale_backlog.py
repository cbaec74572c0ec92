"""AuTraScale beyond its paper: what waits from before is served first. And the switch that leaves that out."""

import pytest

from elastream.errors import SettingError
from elastream.policies.autrascale.backlog import Backlog
from elastream.policies.autrascale.policy import AuTraScale


def test_a_backlog_is_served_once_for_every_change_of_sizes_and_until_little_waits() -> None:
    backlog = Backlog(target_s=0.3)

    def extra(queued: int, *, arrived: bool = True) -> float:
        return backlog.to_serve(queued, 100.0, 2.0, arrived=arrived)

    assert extra(500) == 0.0, "nobody changed anything"
    backlog.begin()
    assert extra(500, arrived=False) == 0.0
    assert [extra(500), extra(200, arrived=False), extra(40, arrived=False)] == [125.0, 50.0, 10.0]
    assert extra(30, arrived=False) == 0.0
    assert extra(500) == 0.0, "what grows now is of these sizes"


def test_a_backlog_that_larger_sizes_do_not_shrink_is_left_as_it_is() -> None:
    backlog = Backlog(target_s=0.3)
    backlog.begin()
    asked = [backlog.to_serve(queued, 100.0, 2.0, arrived=True) for queued in (500, 500, 490, 480, 470)]
    assert [extra > 0 for extra in asked] == [True, True, True, False, False]


def test_plain_is_one_or_not() -> None:
    with pytest.raises(SettingError, match=r"plain must be 0 or 1 \(as in the paper\), got 2"):
        AuTraScale(plain=2)
