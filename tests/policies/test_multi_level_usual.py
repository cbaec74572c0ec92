"""Multi-level elasticity by the usual load: learned, met ahead of time, and left when traffic is not as usual."""

from pathlib import Path

import pytest
from multi_level_looks import said, seen, write_table

from elastream.control import JournalEntry, Proposal
from elastream.control.refusals import Refusals
from elastream.errors import SettingError
from elastream.policies.multi_level import MultiLevel
from elastream.policies.multi_level.forecast import Foresight
from elastream.policies.multi_level.usual import Usual, learn_usual, load_usual
from elastream.report.remarks import remarks
from elastream.testing import observation, source


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write_table(tmp_path)


def test_the_usual_load_is_learned_by_hour_and_weekday_and_knows_its_gaps() -> None:
    day, hour = 86_400.0, 3600.0
    monday = 4 * day
    looks = [(monday + hour * (n + 0.5), hour, 3600.0 * (n + 1)) for n in range(24) if n != 5]
    usual = learn_usual(looks)
    assert len(usual.per_second) == 168
    assert usual.at(monday + 8.5 * hour) == 9.0
    assert usual.at(monday + 9.0 * hour) == 9.5, "half way between two hours"
    assert usual.at(monday + 5.5 * hour) is None and usual.at(monday + day) is None
    assert usual.at(monday + 7 * day + 8.5 * hour) == 9.0, "the same in the next week"


def test_a_usual_load_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "usual.yaml"
    usual = Usual(40.0, 10.0, 0.0, (1.0, None, 3.0, 4.0))
    path.write_text(usual.to_yaml(), encoding="utf-8")
    assert load_usual(str(path)) == usual
    path.write_text(usual.to_yaml().replace("40.0", "45.0"), encoding="utf-8")
    with pytest.raises(SettingError, match=r"period_s must be a whole number of slot_s, got 45 and 10"):
        load_usual(str(path))
    path.write_text("per_second: [1]", encoding="utf-8")
    with pytest.raises(SettingError, match=r"expected period_s, slot_s, begins_s, per_second"):
        load_usual(str(path))


def proactive(table: str, tmp_path: Path, rates: tuple[float | None, ...]) -> MultiLevel:
    path = tmp_path / "usual.yaml"
    path.write_text(Usual(len(rates) * 1000.0, 1000.0, 0.0, rates).to_yaml(), encoding="utf-8")
    return MultiLevel(table=table, usual=str(path))


def test_it_asks_for_a_machine_before_the_usual_rise(table: str, tmp_path: Path) -> None:
    policy = proactive(table, tmp_path, (3000.0, 3000.0, 13500.0, 13500.0))
    assert said(policy.propose(seen(3000, at_s=500))) == {}
    # Half way between the middles of the slots it is 8,250/s; 130 s ahead of that 9,615/s.
    proposal = policy.propose(seen(7800, at_s=2000))
    assert said(proposal) == {"parse": 2}
    proposal = policy.propose(seen(11500, at_s=2310, replicas=2))
    assert said(proposal) == {"host": 2, "executor": 2}
    assert proposal.levels[-1].reason.startswith("proactive: 12,870/s is usual within 130 s")


def test_traffic_that_is_not_as_usual_is_told_once_and_met_reactively(table: str, tmp_path: Path) -> None:
    policy = proactive(table, tmp_path, (3000.0, 3000.0, 3000.0, 3000.0))
    assert policy.propose(seen(3000, at_s=500)).alerts == ()
    attacked = policy.propose(seen(9000, at_s=510))
    assert attacked.alerts == ("traffic is not as usual: 9,000/s where 3,000/s is usual; reactive from here on",)
    assert said(attacked) == {"parse": 2}
    assert attacked.wants[0].reason.startswith("reactive: ") and "is not as usual" in attacked.wants[0].reason
    assert policy.propose(seen(9000, at_s=520, replicas=2)).alerts == ()
    back = [policy.propose(seen(3000, at_s=at_s, replicas=2)).alerts for at_s in (530, 540, 550, 560, 570)]
    assert [alert for alerts in back for alert in alerts] == ["traffic is as usual again: 3,000/s, 3,000/s is usual"]


def test_in_a_gap_of_the_usual_load_it_is_reactive_and_says_so(table: str, tmp_path: Path) -> None:
    policy = proactive(table, tmp_path, (3000.0, None, None, 3000.0))
    gap = policy.propose(seen(3000, at_s=1500))
    assert gap.alerts == ("the usual load has a gap at this hour: reactive until it knows again",)
    proposal = policy.propose(seen(9000, at_s=1510))
    assert said(proposal) == {"parse": 2}
    assert proposal.alerts == () and proposal.wants[0].reason.endswith("the usual load has a gap at this hour")


def test_a_gap_that_comes_within_the_lead_is_named_with_its_time() -> None:
    foresight = Foresight(Usual(4000.0, 1000.0, 0.0, (3000.0, None, 3000.0, 3000.0)), 1)
    assert foresight.look(950.0, 3000.0, 130.0).words == "the usual load has a gap within 130 s"


def test_alerts_are_remarks_of_the_interval() -> None:
    proposal = Proposal(alerts=("traffic is not as usual",))
    entry = JournalEntry(0, "multi-level", observation(source("in", 1)), proposal, ())
    assert list(remarks(entry, Refusals())) == [("alert", "traffic is not as usual")]
