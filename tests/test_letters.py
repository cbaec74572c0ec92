"""Dead letters and readers from outside a run."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from flows import finish, ids_of, numbers, wait_for

from elastream import Topology
from elastream.cli.main import main
from elastream.engine.tick import run_base
from elastream.lanes import Store, audit
from elastream.lanes.readers import acknowledge
from elastream.testing import LocalEngine

Row = dict[str, Any]


def picky(row: Row) -> Row:
    if row["id"] % 10 == 3:
        raise ValueError("[three]")
    return row


def flow(function: Any = picky) -> Topology:
    return numbers(200).map("a", function, after="in", replicas=2).output("out", after="a")


def run_once(base: Path, topology: Topology) -> None:
    with LocalEngine().run(topology, str(base)) as handle:
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
    with LocalEngine().run(flow(), str(base)) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 0)
    assert audit(Store(str(base))).problems == ()


def test_a_handle_takes_letters_away_while_the_stream_flows(tmp_path: Path) -> None:
    with LocalEngine().run(
        numbers(200, 4.0).map("a", picky, after="in").output("out", after="a"), str(tmp_path)
    ) as handle:
        wait_for(lambda: handle.dead_letters().num_rows > 2)
        taken = handle.dead_letters(remove=True).num_rows
        assert taken > 2
        finish(handle)
    with LocalEngine().run(flow(), str(tmp_path)) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 20 - taken)


def test_tuples_of_letters_are_served_again_when_the_operator_is_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_once(tmp_path, flow())
    assert main(["letters", str(tmp_path), "--retry"]) == 0
    assert "20 tuples wait for their operators again; 0 letters stay" in capsys.readouterr().out
    with LocalEngine().run(flow(lambda row: row), str(tmp_path)) as handle:
        finish(handle)
        assert sorted(ids_of(handle).elements()) == list(range(200))
        assert handle.dead_letters().num_rows == 0
        found = handle.audit()
    assert (found.entered, found.finished, found.dropped, found.problems) == (220, 200, 20, ())


def test_letters_of_a_run_that_goes_on_cannot_be_sent_again(tmp_path: Path) -> None:
    with LocalEngine().run(flow(), str(tmp_path)):
        assert main(["letters", str(tmp_path), "--retry"]) == 2


def test_a_base_keeps_no_more_letters_than_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_once(tmp_path, flow())
    monkeypatch.setattr(run_base, "MOST_LETTERS", 7)
    with LocalEngine().run(flow(), str(tmp_path)) as handle:
        wait_for(lambda: handle.dead_letters().num_rows == 7)
        assert handle.audit().problems == ()


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
    with LocalEngine().run(flow(), str(tmp_path)) as handle:
        wait_for(lambda: handle.output("out").num_rows == 0)
