"""A run of Elastream 0.2: its journal and its report are read by the Elastream of today."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from elastream.cli.main import main
from elastream.codec import to_plain
from elastream.control import Journal, JournalEntry, LevelDecision, Look, Move, Redirected, read_journal
from elastream.control.journal import VERSION
from elastream.errors import Damaged
from elastream.fleet import Level
from elastream.lanes import Store
from elastream.lanes.sealed import seal, seal_body
from elastream.report.files import read_record, read_report

RUN = Path(__file__).parent.parent / "data" / "run-0.2"


@pytest.fixture
def entries() -> list[JournalEntry]:
    return list(read_journal(Store(str(RUN / "base"))))


def test_its_entries_say_what_was_seen_and_decided(entries: list[JournalEntry]) -> None:
    assert [entry.number for entry in entries] == [0, 3, 6, 7, 8, 9]
    assert [len(entry.looks) for entry in entries] == [0, 2, 2, 0, 0, 0]
    assert isinstance(entries[1].looks[0], Look) and all(look.latencies for look in entries[1].looks)
    assert list(entries[0].observation.operators) == ["in", "a", "b", "out"]
    assert [(d.operator, d.asked, d.after, d.vetoes) for d in entries[4].decisions] == [
        ("a", 6, 4, ("limits: 1..4 replicas",)),
        ("b", 6, 3, ("limits: 1..4 replicas", "window 00:00-23:59: 1..3")),
    ]
    assert [entry.paused for entry in entries] == [False, False, False, False, True, False]
    assert entries[2].error == "policy 'waves' raised ZeroDivisionError: no idea"


def test_its_rarer_parts_are_read_too(entries: list[JournalEntry]) -> None:
    assert entries[1].proposal is not None
    search = entries[1].proposal.search
    assert search is not None and math.isnan(search.score) and search.next == (2, 3)
    last = entries[-1]
    assert last.levels == (
        LevelDecision(Level.HOST, 2, 3, 3, "more processes", (), 0.5),
        LevelDecision(Level.EXECUTOR, 1, 5, 4, "more machines", ("limits: 1..4 executors",), 2.5),
    )
    assert last.moves == (Move("a", 0, 0, 1, "there is room"),)
    assert last.observation.redirections == (Redirected("b", 12.0, 0.4, "load 0.4 is out of range"),)
    assert last.observation.state_moves[0].bytes == 2048
    fleet = last.observation.level(Level.EXECUTOR)
    assert fleet is not None and (fleet.planned, fleet.problem) == (2, "asked 45 s ago, not there")
    assert last.guards.windows[0].most == 3


def test_it_is_replayed_and_goes_on_in_the_format_of_today(
    entries: list[JournalEntry], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base"
    shutil.copytree(RUN / "base", base)
    journal = Journal(Store(str(base)))
    assert journal.last == 9
    journal.append(entries[1])
    pages = sorted((base / "journal").iterdir())
    versions = [json.loads(page.read_bytes().split(b"\n")[0])["version"] for page in pages]
    assert versions == [1, 1, VERSION]
    # NaN is not equal to itself; looks are those since the entry before, and there are none here.
    again = list(read_journal(Store(str(base))))
    assert len(again) == 7 and str(again[-1]) == str(again[1]).replace(str(again[1].looks), "()")
    assert main(["replay", str(base), "--policy", "static:replicas=3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["recorded_policy"], document["intervals"], document["differ"]) == ("waves", 7, 13)


def test_its_report_is_scored(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(RUN / "report"), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["events"] == {"entered": 360, "finished": 360, "dropped": 0, "queued": 0, "duplicates": 0}
    assert document["replica_seconds"] == pytest.approx(44.12072)
    assert document["latency_ms"]["p95"] == read_report(RUN / "report" / "report.json")["latency_ms"]["p95"]
    record, points = read_record(RUN / "report" / "series.parquet")
    assert (record.name, record.policy, record.sources, record.pools) == ("small", "waves", ("in",), {"a": 4, "b": 4})
    assert sum(point.count for point in points) == 140


def test_a_damaged_report_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(RUN / "report", tmp_path / "report")
    (tmp_path / "report" / "report.json").write_text("[1, 2]")
    assert main(["score", str(tmp_path / "report")]) == 2
    said = capsys.readouterr().err
    assert "report.json: expected object, got [1, 2]; expected the report.json of a run" in " ".join(said.split())


def test_an_entry_with_a_wrong_value_is_refused_with_its_place(entries: list[JournalEntry], tmp_path: Path) -> None:
    page = tmp_path / "journal" / "00000000.json"
    page.parent.mkdir()
    document = to_plain(entries[0])
    document["observation"]["operators"]["a"]["queued"] = "many"
    page.write_bytes(seal_body("journal", json.dumps({"entries": [document]}).encode(), VERSION))
    with pytest.raises(Damaged, match=r"00000000\.json: observation\.operators.*queued: expected int, got .*; restore"):
        list(read_journal(Store(str(tmp_path))))
    page.write_bytes(seal("journal", {"entries": [{"observation": 3}]}))
    with pytest.raises(Damaged, match="is not what an elastream-journal should be"):
        list(read_journal(Store(str(tmp_path))))
    page.write_bytes(seal_body("journal", b'{"entries":[]}', VERSION + 1))
    with pytest.raises(Damaged, match=f"version {VERSION + 1}, this Elastream reads 1 and {VERSION}"):
        list(read_journal(Store(str(tmp_path))))
