"""`elastream chaos`, for a short while: faults are forced one after another, and every tuple is counted."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flows import finish, numbers
from kafka_broker import need_kafka

from elastream.cli.main import main
from elastream.engine.worker.delivery import Delivery
from elastream.lanes import Ledger, LedgerState, Store
from elastream.testing import LocalEngine
from elastream_lab.chaos.deliveries import Deliveries, with_recording_sinks

APP = """
from elastream import Topology, sources, workload

app = Topology("mine")
app.source("in", sources.replay(workload.constant(per_second=400, seconds=600)))
app.map("work", lambda row: row, after="in", replicas=2)
app.sink("store", lambda batch, delivery: None, after="work", replicas=2)
"""


def attacked(words: list[str], capsys: pytest.CaptureFixture[str], *only: str) -> tuple[int, dict[str, Any]]:
    code = main(["chaos", "--json", *words, *(word for kind in only for word in ("--only", kind))])
    said = capsys.readouterr()
    assert said.out, said.err
    found: dict[str, Any] = json.loads(said.out)
    return code, found


def test_a_run_under_attack_loses_doubles_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["driver killed", "host killed", "socket cut", "storage fails", "foreign file"]
    words = ["--plain", "--minutes", "0.5", "--faults", "5", "--seed", "2"]
    code, found = attacked(words, capsys, *kinds)
    assert code == 0, found
    assert found["faults"] > 0 and found["expected"] == 9000
    assert (found["lost"], found["doubled"], found["changed"], found["processes_left"]) == (0, 0, 0, 0)


def test_an_application_is_attacked_and_its_deliveries_are_those_of_the_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(APP)
    code, found = attacked([f"{tmp_path}/mine.py:app", "--faults", "2", "--minutes", "1"], capsys, "driver killed")
    assert code == 0, found
    assert found["kinds"]["driver killed"]["times"] == 2 and found["starts"] == 3
    assert found["expected"] > 0
    assert (found["lost"], found["doubled"], found["changed"], found["processes_left"]) == (0, 0, 0, 0)


def test_an_application_that_cannot_start_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "twets"]) == 2
    assert "did you mean 'tweets'?" in capsys.readouterr().err
    (tmp_path / "mine.py").write_text(APP)
    assert main(["chaos", f"{tmp_path}/mine.py:app", "--broker"]) == 2
    assert main(["chaos", f"{tmp_path}/mine.py:app", "--only", "poison"]) == 2
    assert "no fault 'poison' here" in capsys.readouterr().err


def test_an_application_whose_run_is_refused_is_not_tried_again_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "mine.py").write_text(
        APP + "import sys\nif 'chaos.driver' in str(sys.orig_argv): raise OSError('no')\n"
    )
    assert main(["chaos", f"{tmp_path}/mine.py:app"]) == 2
    assert re.search(
        r"the run does not start: .*OSError: no at \S+; \S+/driver.log tells more", capsys.readouterr().err
    )


def test_numbers_of_a_topic_arrive_once_although_the_broker_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    need_kafka()
    words = ["--broker", "--plain", "--faults", "1", "--minutes", "0.1"]
    code, found = attacked(words, capsys, "broker killed")
    assert code == 0, found
    assert found["kinds"]["broker killed"]["times"] == 1
    # Those of the replay, and of the topic those before, during and after.
    assert found["expected"] >= 1800 + 300
    assert (found["lost"], found["doubled"], found["changed"], found["processes_left"]) == (0, 0, 0, 0)


class Witnessed:
    """A run without Spark whose sink notes its deliveries, and what the ledger said at its end."""

    def __init__(self, folder: Path, *, chained: bool = False) -> None:
        flow = numbers(200).map("a", lambda row: row, after="in", replicas=2).topology
        self.graph = flow.sink("store", lambda batch, delivery: None, after="a", chain=chained).topology.build()
        self.witness = Deliveries(self.graph, folder / "sink")
        self.recording = with_recording_sinks(self.graph, folder / "sink")
        with LocalEngine().start(self.recording, str(folder / "base")) as handle:
            finish(handle)
        self.state: LedgerState = Ledger(Store(str(folder / "base"))).load()

    def deliver(self, first: int, ids: list[int], name: str = "forged") -> None:
        """Once more, to the same sink."""
        sink = self.recording["store"].function
        assert sink is not None
        sink(pa.record_batch({"id": ids}), Delivery(name, "store", 0, first))

    def judged(self) -> tuple[int, int, int, int]:
        found = self.witness.verdict(self.state, drained=True)
        return found.expected, found.lost, found.doubled, found.changed


@pytest.mark.parametrize("chained", [False, True])
def test_every_tuple_of_an_application_is_found_among_its_deliveries(tmp_path: Path, chained: bool) -> None:
    run = Witnessed(tmp_path, chained=chained)
    assert run.judged() == (200, 0, 0, 0)
    assert run.witness.verdict(run.state, drained=True).repeated == 0


def test_a_delivery_that_is_missing_is_lost(tmp_path: Path) -> None:
    run = Witnessed(tmp_path)
    for path in (tmp_path / "sink").glob("*.calls"):
        path.unlink()
    assert run.judged() == (200, 200, 0, 0)


def test_tuples_under_two_names_are_doubled_and_what_is_not_committed_is_not_judged(tmp_path: Path) -> None:
    run = Witnessed(tmp_path)
    run.deliver(200, [1, 2, 3], "of a driver that was killed before it committed")
    assert run.judged() == (200, 0, 0, 0)
    run.deliver(10, [10, 11, 12])
    assert run.judged() == (200, 0, 3, 0)


def test_a_delivery_that_comes_again_must_have_the_same_rows(tmp_path: Path) -> None:
    run = Witnessed(tmp_path)
    run.deliver(300, [1, 2], "again")
    run.deliver(300, [1, 2], "again")
    assert run.witness.wrong() == 0 and run.witness.verdict(run.state, drained=True).repeated == 1
    run.deliver(300, [1, 3], "again")
    assert run.witness.wrong() == 1


def test_a_replay_that_did_not_make_all_its_tuples_has_lost_them(tmp_path: Path) -> None:
    run = Witnessed(tmp_path)
    run.state.totals["in"].processed -= 5
    assert run.judged() == (200, 5, 0, 0)
