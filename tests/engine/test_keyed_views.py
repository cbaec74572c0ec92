"""State of keys as others see it: from outside while the stream flows, in journals and reports."""

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from flows import finish, wait_for
from word_counts import counted, counting, expected, words

from elastream.cli.main import main
from elastream.control import Policy, Proposal, Want, read_journal
from elastream.engine.recording import Recorder, events_of
from elastream.lanes import Store
from elastream.report.write import write_report
from elastream.state.table import state_of_key, state_table
from elastream.testing import LocalEngine


def test_states_can_be_looked_at_from_outside_while_the_stream_flows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = str(tmp_path / "base")
    with LocalEngine().start(counting(words(30_000, 100, 3.0)), base) as handle:
        wait_for(lambda: handle.totals("count").processed > 1000)
        seen, until = 0, time.monotonic() + 60
        while handle.active and time.monotonic() < until:
            total = sum(handle.state("count").column("n").to_pylist())
            assert seen <= total <= 30_000
            seen = total
            if handle.await_end(0.0):
                break
    assert counted(handle) == expected(30_000, 100)
    assert main(["state", base]) == 0
    shown = capsys.readouterr().out
    assert "count" in shown and "word string" in shown and "100" in shown
    assert main(["state", base, "count"]) == 0
    assert "key groups" in capsys.readouterr().out
    assert main(["state", base, "count", "--key", "w1"]) == 0
    assert f'"n": {expected(30_000, 100)["w1"]}' in capsys.readouterr().out
    assert main(["state", base, "count", "--key", "nobody"]) == 1
    file = tmp_path / "all.parquet"
    assert main(["state", base, "count", "--export", str(file)]) == 0
    assert pq.read_table(file).num_rows == 100
    capsys.readouterr()
    for wrong, said in (
        (["state", base, "cuont"], "no keyed operator 'cuont'; those that remember something: count"),
        (["state", base, "count", "--key", "a", "b"], "its key is word, got 2 values"),
        (["state", str(tmp_path)], "has no ledger"),
        (["state", base, "--export", "x"], "of which operator?"),
    ):
        assert main(wrong) == 2
        assert said in capsys.readouterr().err
    assert state_of_key(Store(base), "count", ("w2",)) == {"word": "w2", "n": expected(30_000, 100)["w2"]}
    assert state_table(Store(base), "count").num_rows == 100


def test_states_that_moved_are_in_the_journal_the_report_and_its_page(tmp_path: Path) -> None:
    class UpAndDown(Policy):
        name, start = "up and down", 1

        def propose(self, observation: Any) -> Proposal:
            size = observation.operators["count"].replicas
            return Proposal((Want("count", 2 if size == 1 else 1, "a change in every interval"),))

    flow = counting(words(6000, 100, 3.0), replicas=(1, 2), start=1)
    engine, base = LocalEngine(), str(tmp_path / "base")
    recorder = Recorder(graph := flow.build())
    with engine.start(graph, base, policy=UpAndDown(), td_s=0.5, benchmark_s=0.0, listeners=[recorder]) as handle:
        finish(handle)
        events, moves = events_of(handle.audit()), handle.state_moves
    report = write_report(recorder.record, events, tmp_path / "report")
    between = [moved for moved in moves if moved.between_hosts]
    assert between and all(moved.checksum_before == moved.checksum_after for moved in moves)
    told = [moved for entry in read_journal(Store(base)) for moved in entry.observation.state_moves]
    assert told == moves[: len(told)] and told
    assert [moved["groups"] for moved in report["state_moves"]] == [
        m.groups for m in moves[: len(report["state_moves"])]
    ]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "State that moved" in page and "the same" in page
