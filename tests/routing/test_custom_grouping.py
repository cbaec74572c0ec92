"""`groupings.custom`: a user's function chooses replicas, on every host; what it gives is checked."""

import pydoc
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flows import ids_of
from simulations import line

import elastream
from elastream import Guards, Observation, Policy, Proposal, Settings, Topology, groupings, sources
from elastream.errors import ElastreamError, OperatorFailed, SettingError, TopologyError
from elastream.routing import Sender, Snapshot, split
from elastream.settings import GROUPS
from elastream.testing import LocalEngine
from elastream.workload import constant

IDS = pa.record_batch({"id": pa.array([5, 6, 7, 8, 9], pa.int64())})


def by_id(batch: pa.RecordBatch, replicas: int) -> Any:
    return np.asarray(batch.column("id")) % replicas


def flow(grouping: groupings.Grouping, seconds: float = 3.0) -> Topology:
    made = Topology("flow")
    made.source("in", sources.replay(constant(200, seconds)))
    made.batch("mark", lambda batch: batch, after="in", grouping=grouping, replicas=(1, 3), start=3)
    made.output("out", after="mark")
    return made


def test_rows_go_to_the_replicas_that_the_function_names_in_their_order() -> None:
    parts = split(groupings.custom(by_id), IDS, Snapshot((0, 1, 2)), Sender())
    assert {lane: part.rows.column("id").to_pylist() for lane, part in parts.items()} == {0: [6, 9], 1: [7], 2: [5, 8]}
    # Numbers count among the active replicas.
    assert set(split(groupings.custom(by_id), IDS, Snapshot((4, 7)), Sender())) == {4, 7}
    same = groupings.custom(lambda batch, replicas: pa.array([0] * batch.num_rows))
    assert list(split(same, IDS, Snapshot((0, 1)), Sender())) == [0]
    assert str(groupings.custom(by_id)) == "custom(by_id)"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 1], "expected a replica number for each of 5 rows, got 2; return one number per row"),
        ([0, 1, 2, 3, 0], "from 0 to 2, got 3 for row 3; take it % replicas"),
        ([0, 1, -1, 0, 0], "from 0 to 2, got -1 for row 2; take it % replicas"),
        ([0.0, 1, 1, 0, 0], "got list with float64; return an array of integers"),
        ([[0, 1, 1, 0, 0]], "got list with int64 of 2 dimensions; return an array of integers"),
        (None, "got NoneType with object of 0 dimensions; return an array of integers"),
        (["a"] * 5, "got list with <U1; return an array of integers"),
        ([True] * 5, "got list with bool; return an array of integers"),
        ([[0], [1, 2]], "raised ValueError"),
    ],
)
def test_an_answer_that_names_no_replicas_is_one_line(answer: object, message: str) -> None:
    grouping = groupings.custom(lambda batch, replicas: answer)
    with pytest.raises(OperatorFailed) as error:
        split(grouping, IDS, Snapshot((0, 1, 2)), Sender())
    text = str(error.value)
    assert text.startswith("grouping custom(<lambda>): ") and message in text and "\n" not in text
    # It is checked before there is a choice, too.
    with pytest.raises(OperatorFailed):
        split(grouping, IDS, Snapshot((0,)), Sender())


class Watch(Policy):
    """Changes nothing, and counts what each lane of `mark` received."""

    def __init__(self) -> None:
        self.received: Counter[int] = Counter()

    def propose(self, observation: Observation) -> Proposal:
        for lane in observation.operators["mark"].lanes:
            self.received[lane.lane] += lane.received
        return Proposal()


def test_tuples_reach_their_replicas_on_the_engine_and_none_is_lost(tmp_path: Path) -> None:
    watch = Watch()
    with LocalEngine(virtual=True).start(
        flow(groupings.custom(by_id)), str(tmp_path), policy=watch, td_s=0.5
    ) as handle:
        handle.await_end(60)
        assert sorted(ids_of(handle)) == list(range(600))
    assert all(watch.received[lane] >= 150 for lane in range(3)) and set(watch.received) == {0, 1, 2}
    assert max(watch.received.values()) - min(watch.received.values()) <= 1


def test_a_function_travels_to_processes_with_what_it_closes_over(tmp_path: Path) -> None:
    watch, wanted = Watch(), 1
    grouping = groupings.custom(lambda batch, replicas: np.full(batch.num_rows, wanted))
    with LocalEngine(processes=True).start(flow(grouping, 2.0), str(tmp_path), policy=watch, td_s=0.2) as handle:
        handle.await_end(60)
        assert sorted(ids_of(handle)) == list(range(400))
    assert watch.received[1] > 0 == watch.received[0] == watch.received[2]


def test_a_function_that_fails_ends_the_run_with_the_names_of_its_operators(tmp_path: Path) -> None:
    grouping = groupings.custom(lambda batch, replicas: [replicas] * batch.num_rows)
    with (
        pytest.raises(ElastreamError, match=r"edge 'in' -> 'mark': grouping custom.*from 0 to 2, got 3 for row 0"),
        LocalEngine(virtual=True).start(flow(grouping), str(tmp_path), policy=None) as handle,
    ):
        handle.await_end(60)


def test_what_cannot_be_is_refused_when_it_is_declared() -> None:
    with pytest.raises(TopologyError, match=r"expected function\(batch, replicas\) -> array, got str"):
        groupings.custom("id")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"edge 'in' -> 'op0': grouping custom\(by_id\) cannot be simulated"):
        line(constant(1, 1), grouping=groupings.custom(by_id))


def test_help_explains_every_grouping_and_every_setting() -> None:
    text = pydoc.plain(pydoc.render_doc(groupings))
    public = {
        name
        for name, value in vars(groupings).items()
        if isinstance(value, groupings.Grouping)
        or getattr(value, "__annotations__", {}).get("return") is groupings.Grouping
    }
    assert {"all_", "global_", "custom", "fields", "shuffle", "local"} <= public
    assert all(f"\n{name}" in (groupings.__doc__ or "") for name in public)
    assert "every tuple to every replica" in text
    assert "to the first active replica" in pydoc.plain(pydoc.render_doc(groupings.global_))
    for kind in (*GROUPS, Settings, Guards):
        lines = (kind.__doc__ or "").splitlines()
        for name in (field.name for field in fields(kind)):
            place = next(number for number, told in enumerate(lines) if told.split(" = ")[0] == name)
            assert lines[place + 1].startswith("    ") and len(lines[place + 1].split()) >= 3, name
    assert "q_size = None" in pydoc.plain(pydoc.render_doc(elastream.QueueSettings))


def test_the_readme_names_groupings_as_they_are_called() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    listed = text.partition("Groupings: ")[2].partition(".")[0]
    names = {word.strip("` ") for word in listed.replace("\n", " ").split(",")}
    assert all(hasattr(groupings, name) for name in names), names
    assert {"all_", "global_", "custom"} <= names
