"""Functions that fail: said at once, counted apart from what is dropped, and the end of a run that serves nothing."""

import io
import json
import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flows import finish
from rich.console import Console

from elastream import ErrorSettings, Settings, Topology, sources
from elastream.cli.main import main
from elastream.cli.status_view import view
from elastream.cli.summary import print_summary
from elastream.engine.driver.commit.first_failures import FirstFailures
from elastream.engine.messages import FailureNote, LaneReceipt, Receipt
from elastream.engine.operations.snapshot import RunSnapshots
from elastream.engine.operations.status_document import StatusDocument
from elastream.engine.recording import Recorder, events_of
from elastream.engine.worker.dead_letters import kind_of
from elastream.errors import OperatorFailed, SettingError
from elastream.lanes import Store, audit
from elastream.report.write import write_report
from elastream.testing import LocalEngine
from elastream.user_code import LONGEST, describe
from elastream.workload import constant

Row = dict[str, Any]


def picky(row: Row) -> Row:
    if row["id"] % 10 == 3:
        raise ValueError(f"no {row['id']}")
    if row["id"] % 10 == 4:
        json.loads("{")
    return row


def hopeless(row: Row) -> Row:
    return {"id": row["idd"]}


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


def flow(function: Any = picky, count: int = 300) -> Topology:
    topology = Topology("pages")
    topology.source("in", sources.replay(constant(count, 1)))
    topology.map("a", function, after="in").output("out")
    return topology


def engine() -> LocalEngine:
    return LocalEngine(virtual=True)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, "elastream"):
        yield caplog


def test_the_first_failure_of_each_kind_is_said_once_with_its_line_and_row(
    tmp_path: Path, told: pytest.LogCaptureFixture
) -> None:
    with engine().start(flow(), str(tmp_path)) as handle:
        finish(handle)
        failures = handle.failures
    said = [record.getMessage() for record in told.records if record.name == "elastream.failures"]
    assert list(failures) == said and len(said) == 2
    raised = "raise ValueError(f\"no {row['id']}\")"
    place = f"at {__file__}:{line_of(raised)} ({raised}); the tuple is"
    assert f"operator 'a' failed on a tuple, which is a dead letter now: ValueError: no 3 {place} {{\"id\": 3}}" in said
    # Raised inside of Python's own json: the line is the user's.
    inner = line_of('json.loads("{")')
    assert any(f"at {__file__}:{inner} " in words and "JSONDecodeError" in words for words in said)


def test_a_long_message_leaves_room_for_the_line() -> None:
    try:
        raise ValueError("x" * 2 * LONGEST)
    except ValueError as error:
        text = describe(error)
    assert len(text) <= LONGEST and f"at {__file__}:" in text
    assert kind_of(text) == kind_of(text.replace("xx", "y", 1)) != kind_of("no line")


def test_an_operator_that_fails_on_all_of_its_first_tuples_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(OperatorFailed) as raised, engine().start(flow(hopeless), str(tmp_path)) as handle:
        handle.await_end()
    words = str(raised.value)
    assert "operator 'a' failed on all of its first 1" in words and "KeyError: 'idd'" in words
    line = line_of('return {"id": row["idd"]}')
    assert f"test_failures.py:{line}" in words and '{"id": 0}' in words
    assert "stop_after_failures=None" in words and "--allow-dead-letters" in words
    found = audit(Store(str(tmp_path)))
    # What was not committed waits for a function that is mended.
    assert found.problems == () and found.dead_letters < 100
    with engine().start(flow(), str(tmp_path)) as handle:
        finish(handle)
        assert handle.audit().finished > 0


def test_it_goes_on_where_that_is_allowed_or_one_tuple_was_served(tmp_path: Path) -> None:
    allowed = Settings(errors=ErrorSettings(stop_after_failures=None))
    with engine().start(flow(hopeless), str(tmp_path / "all"), settings=allowed) as handle:
        finish(handle)
        assert handle.new_dead_letters == {"a": 300} and str(handle.audit()) == (
            "read 300 = finished 0 + dropped 0 + dead letters 300 + queued 0; duplicates 0"
        )

    def once(row: Row) -> Row:
        return row if row["id"] == 0 else hopeless(row)

    with engine().start(flow(once), str(tmp_path / "one")) as handle:
        finish(handle)
        assert handle.new_dead_letters == {"a": 299}


def test_an_operator_whose_timers_give_something_serves_also_without_a_tuple() -> None:
    """A run that goes on with a base may begin with keys to be woken: some of them fail, and no tuple has come yet."""
    note = FailureNote("a", 0, "ValueError: no", "{}")
    FirstFailures(100).hear([Receipt(1, [LaneReceipt("a", 0, emitted=50, failed=150)], failures=[note])])
    with pytest.raises(OperatorFailed, match="first 150 tuples"):
        FirstFailures(100).hear([Receipt(1, [LaneReceipt("a", 0, failed=150)], failures=[note])])


def test_how_many_are_too_many_is_checked() -> None:
    with pytest.raises(SettingError, match="stop_after_failures must be a whole number, 1 or more, got 0"):
        Settings(errors=ErrorSettings(stop_after_failures=0))


def test_dead_letters_of_an_earlier_run_are_not_new(tmp_path: Path) -> None:
    for new in ({"a": 60}, {}):
        with engine().start(flow(), str(tmp_path)) as handle:
            finish(handle)
            assert handle.new_dead_letters == new
            assert handle.audit().dead_letters == 60


def recorded(base: Path, report: Path) -> tuple[StatusDocument, dict[str, Any]]:
    topology = flow(count=3000)
    recorder, snapshots = Recorder(topology.build()), RunSnapshots()
    with engine().start(topology, str(base), policy="elastic", listeners=[recorder, snapshots]) as handle:
        finish(handle)
    return snapshots.take(), write_report(recorder.record, events_of(handle.audit()), report)


def test_views_show_dead_letters_apart_from_what_is_dropped(tmp_path: Path) -> None:
    document, report = recorded(tmp_path / "a base", tmp_path)
    assert report["events"]["dead_letters"] == report["new_dead_letters"] == 600
    assert report["events"]["dropped"] == 0
    assert report["operators"]["a"]["dead_letters"] == 600 and report["operators"]["a"]["dropped"] == 0
    command = f"elastream letters '{tmp_path / 'a base'}'"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "600 are dead letters; nothing dropped" in page and "lost" not in page.split("</header>")[0].split("<h1>")[1]
    assert command.replace("'", "&#x27;") in page and "ValueError: no 3" in page
    console = Console(record=True, width=200, file=io.StringIO())
    print_summary(report, console)
    console.print(view(document))
    said = console.export_text()
    assert "read 3,000 = finished 2,400 + dropped 0 + dead letters 600 + queued 0; duplicates 0" in said
    assert f"600 dead letters: {command} shows them, --retry serves them again" in said
    assert "dropped 0   latency" in said and "dead letters 600" in said
    assert f"{command} shows the dead letters" in said and "ValueError: no 3" in said


def test_a_notebook_shows_a_run(tmp_path: Path) -> None:
    with engine().start(flow(), str(tmp_path / "a&b"), policy=None) as handle:
        finish(handle)
        page = handle._repr_html_()
    root = ET.fromstring(f"<div>{page}</div>")
    rows = {row[0].text: [cell.text for cell in row] for row in root.iter("tr") if row[0].tag == "td"}
    assert list(rows) == ["in", "a", "out"] and rows["a"][1] == "1" and rows["a"][-1] == "60"
    assert "pages, over; policy by hand" in "".join(root.itertext()) and f"elastream letters {tmp_path}/a&amp;b" in page
    with pytest.raises(OperatorFailed), engine().start(flow(hopeless), str(tmp_path / "failed")) as handle:
        handle._run.life.wait(60)
        assert ", failed: operator &#x27;a&#x27; failed on all of its first" in handle._repr_html_()


def test_wrong_types_stop_a_run_at_once_or_are_dead_letters_once_the_operator_has_kept_its_word(tmp_path: Path) -> None:
    """As the README says."""
    wrong = flow(lambda row: {"id": str(row["id"])})
    with (
        pytest.raises(OperatorFailed, match="declared id int64, returned other types"),
        engine().start(wrong) as handle,
    ):
        handle.await_end()
    sometimes = flow(lambda row: {"id": "x" if row["id"] % 3 == 1 else row["id"]})
    with engine().start(sometimes, str(tmp_path)) as handle:
        finish(handle)
        assert handle.new_dead_letters == {"a": 100} and handle.audit().finished == 200


def test_a_recorded_run_is_scored_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the load of hosts, which is a figure of several figures."""
    _, report = recorded(tmp_path / "base", tmp_path)
    assert "hosts" in report["load"]
    assert main(["score", str(tmp_path)]) == 0
    assert "load of hosts ratio mean" in capsys.readouterr().out


def test_audit_says_what_was_read_and_what_was_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = Topology("pages")
    topology.source("in", sources.replay(constant(100, 1)))
    topology.flat_map("twice", lambda row: [row, row], after="in").map("a", picky).output("out")
    with engine().start(topology, str(tmp_path)) as handle:
        finish(handle)
    assert main(["audit", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "read 100 + created 100 = finished 160 + dropped 0 + dead letters 40 + queued 0" in said
    assert f"elastream letters {tmp_path} shows the dead letters" in said
    assert main(["audit", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["read"], document["created"], document["dead_letters"]) == (100, 100, 40)
