"""Dead letters and readers from outside a run."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from flows import finish, ids_of, numbers, wait_for

from elastream import ErrorSettings, Settings, Topology, sources
from elastream.cli.main import main
from elastream.engine.letters import drain_letters, read_letters, retry_letters
from elastream.errors import SettingError
from elastream.lanes import Store, audit
from elastream.lanes.readers import OutputReader, acknowledge
from elastream.testing import LocalEngine
from elastream.workload import constant

Row = dict[str, Any]


def picky(row: Row) -> Row:
    if row["id"] % 10 == 3:
        raise ValueError("[three]")
    return row


def flow(function: Any = picky) -> Topology:
    return numbers(200).map("a", function, after="in", replicas=2).output("out").topology


def run_once(base: Path, topology: Topology) -> None:
    with LocalEngine().start(topology, str(base)) as handle:
        finish(handle)


def test_letters_are_shown_written_to_a_file_and_taken_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tmp_path / "base"
    run_once(base, flow())
    assert main(["letters", str(base)]) == 0
    shown = capsys.readouterr().out
    assert "ValueError: [three]" in shown and '{"id": 193}' in shown
    assert main(["letters", str(base), "--drain", str(tmp_path / "letters.parquet")]) == 0
    kept = pq.read_table(tmp_path / "letters.parquet")
    assert sorted(kept.column("row").to_pylist()) == sorted(f'{{"id": {n}}}' for n in range(3, 200, 10))
    # The next driver takes them away.
    with LocalEngine().start(flow(), str(base)) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 0)
    assert audit(Store(str(base))).problems == ()


def test_a_handle_takes_letters_away_while_the_stream_flows(tmp_path: Path) -> None:
    with LocalEngine().start(numbers(200, 4.0).map("a", picky, after="in").output("out"), str(tmp_path)) as handle:
        wait_for(lambda: handle.dead_letters().num_rows > 2)
        taken = handle.dead_letters(remove=True).num_rows
        assert taken > 2
        finish(handle)
    with LocalEngine().start(flow(), str(tmp_path)) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 20 - taken)


def test_tuples_of_letters_are_served_again_when_the_operator_is_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_once(tmp_path, flow())
    assert main(["letters", str(tmp_path), "--retry"]) == 0
    assert "20 tuples wait for their operators again; 0 letters stay" in capsys.readouterr().out
    with LocalEngine().start(flow(lambda row: row), str(tmp_path)) as handle:
        finish(handle)
        assert sorted(ids_of(handle).elements()) == list(range(200))
        assert handle.dead_letters().num_rows == 0
        found = handle.audit()
    assert (found.entered, found.finished, found.dropped, found.problems) == (220, 200, 20, ())


def test_letters_of_a_run_that_goes_on_cannot_be_sent_again(tmp_path: Path) -> None:
    with LocalEngine().start(flow(), str(tmp_path)):
        assert main(["letters", str(tmp_path), "--retry"]) == 2


def letters_of(base: Path) -> list[str]:
    rows: list[str] = read_letters(Store(str(base))).column("row").to_pylist()
    return rows


def test_a_base_keeps_the_newest_letters_up_to_a_bound_and_counts_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_once(tmp_path, flow())
    newest = letters_of(tmp_path)[-7:]
    with LocalEngine().start(flow(), str(tmp_path), settings=Settings(errors=ErrorSettings(most_letters=7))) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 7)
        found = handle.audit()
    assert (found.entered, found.finished, found.dropped, found.expired, found.problems) == (200, 180, 20, 13, ())
    assert letters_of(tmp_path) == newest
    assert main(["letters", str(tmp_path)]) == 0
    assert "13 older letters were removed unread" in capsys.readouterr().out
    assert main(["audit", str(tmp_path)]) == 0
    assert "dead letters removed unread 13" in capsys.readouterr().out


def test_letters_that_were_taken_away_are_not_counted_as_removed_unread(tmp_path: Path) -> None:
    run_once(tmp_path, flow())
    acknowledge(Store(str(tmp_path)), "dead-letters", "somebody", 15)
    with LocalEngine().start(flow(), str(tmp_path), settings=Settings(errors=ErrorSettings(most_letters=3))) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 3)
        assert handle.audit().expired == 2


def test_letters_live_for_so_many_days_and_no_longer(tmp_path: Path) -> None:
    """Four hours of a stream, in virtual time: a letter every six minutes, each kept for one hour."""
    hours = Topology("slow")
    hours.source("in", sources.replay(constant(400 / 14_400, 14_400)))
    hours.map("a", picky, after="in").output("out")
    settings = Settings(errors=ErrorSettings(letters_days=1 / 24))
    with LocalEngine(virtual=True).start(hours, str(tmp_path), settings=settings) as handle:
        finish(handle)
        found = handle.audit()
    failed = read_letters(Store(str(tmp_path))).column("failed_at").to_pylist()
    assert len(failed) + found.expired == 40 and found.problems == ()
    # The last tuple came at the end, and six minutes after the last letter.
    assert len(failed) in (9, 10, 11)
    assert max(failed) - min(failed) <= timedelta(hours=1)


def test_a_letter_that_cannot_be_read_does_not_stop_a_run(tmp_path: Path) -> None:
    run_once(tmp_path, flow())
    store = Store(str(tmp_path))
    for piece in OutputReader(store).backlog("dead-letters").slices:
        with (tmp_path / "segments" / piece.segment).open("r+b") as segment:
            segment.seek(piece.offset)
            segment.write(b"?" * piece.length)
    with LocalEngine().start(flow(), str(tmp_path), settings=Settings(errors=ErrorSettings(most_letters=5))) as handle:
        wait_for(lambda: handle.audit().expired == 15)


@pytest.mark.parametrize("wrong", [{"most_letters": -1}, {"letters_days": 0.0}, {"letters_days": float("nan")}])
def test_bounds_of_letters_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        ErrorSettings(**wrong)


def test_a_reader_that_is_gone_is_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_once(tmp_path, flow())
    store = Store(str(tmp_path))
    acknowledge(store, "out", "gone", 5)
    acknowledge(store, "out", "here", 180)
    (tmp_path / "readers" / "out" / ".DS_Store").write_bytes(b"?")
    (tmp_path / "readers" / "out" / "here.json~").write_bytes(b"?")
    assert main(["readers", str(tmp_path)]) == 0
    assert re.search(r"out\W+gone\W+5\W+175", capsys.readouterr().out)
    assert main(["readers", str(tmp_path), "--forget", "gone"]) == 0
    assert main(["readers", str(tmp_path), "--forget", "nobody"]) == 2
    with LocalEngine().start(flow(), str(tmp_path)) as handle:
        wait_for(lambda: handle.output("out").num_rows == 0)


def timed(wake: Any) -> Topology:
    """An operator whose tuples have the columns of its key, so that the letter of a timer looks like a tuple."""

    def remember(key: int, rows: list[Row], state: Any) -> list[Row]:
        state.n += len(rows)
        state.wake_at(1.0)
        if key == 3:
            raise ValueError("three")
        return []

    return (
        numbers(40)
        .key_by("id", after="in")
        .process("a", remember, state="n long", initial={"n": 0}, schema="id long", on_timer=wake)
        .output("out")
        .topology
    )


def test_letters_of_timers_are_not_served_as_tuples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def raise_on_seven(key: int, at_s: float, state: Any) -> list[Row]:
        if key % 10 == 7:
            raise ValueError("seven")
        return [{"id": key}]

    with LocalEngine().start(timed(raise_on_seven), str(tmp_path)) as handle:
        finish(handle)
        assert sorted(letter["timer"] for letter in handle.dead_letters().to_pylist()) == [False] + 4 * [True]
    assert main(["letters", str(tmp_path), "--retry"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 tuples wait for their operators again; 4 letters stay" in said
    assert "4 of them are of timers" in said and "--drain" in said
    with LocalEngine().start(timed(raise_on_seven), str(tmp_path)) as handle:
        finish(handle)
        counts = {row["id"]: row["n"] for row in handle.state("a").to_pylist()}
        assert handle.audit().problems == ()
    assert counts == {n: 1 for n in range(40) if n != 3}
    assert sorted(letters_of(tmp_path)) == sorted(f'{{"id": {n}}}' for n in (3, 7, 17, 27, 37))


def test_letters_that_were_drained_are_neither_retried_nor_drained_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base"
    run_once(base, flow())
    assert main(["letters", str(base), "--drain", str(tmp_path / "first.parquet")]) == 0
    assert capsys.readouterr().out.startswith("20 letters are in")
    assert main(["letters", str(base), "--drain", str(tmp_path / "second.parquet")]) == 0
    assert capsys.readouterr().out.startswith("0 letters are in")
    assert main(["letters", str(base), "--retry"]) == 0
    assert capsys.readouterr().out.startswith("0 tuples wait for their operators again; 0 letters stay")
    with LocalEngine().start(flow(), str(base)) as handle:
        finish(handle)
        assert sum(ids_of(handle).values()) == 180 and handle.audit().problems == ()


def test_letters_that_come_after_a_drain_are_retried_alone(tmp_path: Path) -> None:
    base = tmp_path / "base"
    with LocalEngine().start(numbers(100).map("a", picky, after="in").output("out"), str(base)) as handle:
        finish(handle)
    drain_letters(Store(str(base)), str(tmp_path / "drained.parquet"))
    # A reader that is behind keeps the drained letters where they are.
    acknowledge(Store(str(base)), "dead-letters", "behind", 0)
    with LocalEngine().start(flow(), str(base)) as handle:
        finish(handle)
    assert retry_letters(Store(str(base))) == (10, 0, 0)
    with LocalEngine().start(flow(lambda row: row), str(base)) as handle:
        finish(handle)
        assert sorted(ids_of(handle)) == [n for n in range(200) if n % 10 != 3 or n >= 100]
        assert handle.audit().problems == ()
