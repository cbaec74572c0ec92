"""Redirection by load (Dr-Stream): tuples, key groups and keys go to replicas with more room, and nothing is lost or doubled."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from flows import each_once, finish, ids_of, wait_for
from hypothesis import given
from hypothesis import strategies as st

from elastream import Topology, groupings, rules, sources
from elastream.control import Policy, Proposal
from elastream.engine.driver.placement.redirector import _Flow
from elastream.errors import TopologyError
from elastream.routing import Sender, Snapshot, split
from elastream.routing.hashing import hash_columns
from elastream.routing.key_groups import dealt_out, groups_of, groups_with_splits, moves
from elastream.routing.redirection import NEAR_ENOUGH, redirected, redirected_groups, split_among
from elastream.testing import LocalEngine
from elastream.topology.groupings import KEY_GROUPS
from elastream.workload import constant

ratios = st.lists(st.floats(0.0, 2.0), min_size=1, max_size=12)
Rows = list[dict[str, Any]]


# -- algorithm 1, for tuples


@given(st.integers(0, 2000), ratios, st.floats(1e-4, 0.1), st.integers(0, 50))
def test_every_tuple_goes_somewhere_and_full_queues_get_none_while_there_is_room(
    rows: int, found: list[float], cost: float, turn: int
) -> None:
    counts = redirected(rows, found, cost, turn)
    assert sum(counts) == rows and min(counts) >= 0
    room = sum(int(max(0.0, 1.0 - ratio) / cost) for ratio in found)
    if rows < room - len(found):
        assert all(count == 0 for ratio, count in zip(found, counts, strict=True) if ratio >= 1.0)
        assert all(r + (count - 2) * cost <= 1.0 for r, count in zip(found, counts, strict=True) if count)


def test_an_empty_queue_is_served_first() -> None:
    assert redirected(1, [0.4, 0.0, 0.2], 0.01, 5) == [0, 1, 0]
    assert sorted(redirected(2, [0.0, 0.3, 0.0], 0.01, 1)) == [0, 1, 1]


def test_tuples_are_shared_out_in_proportion_to_room() -> None:
    """Equation 12 by hand: rooms of 0.9, 0.6 and 0.3 of a queue of 100."""
    assert redirected(90, [0.1, 0.4, 0.7], 0.01, 0) == [45, 30, 15]


def test_dealing_in_one_go_is_dealing_tuple_by_tuple() -> None:
    """The paper's loop, with its probabilities, many times over."""
    start, cost, rows, chance = [0.2, 0.5, 0.8, 0.0], 0.002, 300, random.Random(4)
    totals = np.zeros(4)
    for _ in range(200):
        found = list(start)
        for _ in range(rows):
            empty = [lane for lane in range(4) if found[lane] <= 0.0]
            rooms = [max(0.0, 1.0 - ratio) for ratio in found]
            lane = empty[0] if empty else chance.choices(range(4), rooms)[0]
            found[lane] += cost
            totals[lane] += 1
    assert redirected(rows, start, cost, 0) == pytest.approx(totals / 200, abs=4)


def test_when_all_queues_are_full_the_least_full_come_first() -> None:
    assert redirected(10, [1.5, 1.0, 3.0], 0.1, 0) == [3, 7, 0]


# -- for key groups


@st.composite
def loaded_lanes(draw: st.DrawFn) -> tuple[list[int], list[float], list[float], list[float]]:
    lanes = draw(st.integers(1, 12))
    owners = draw(st.lists(st.integers(0, lanes - 1), min_size=KEY_GROUPS, max_size=KEY_GROUPS))
    demand = draw(st.lists(st.floats(0.0, 0.2), min_size=KEY_GROUPS, max_size=KEY_GROUPS))
    slow = draw(st.lists(st.floats(0.5, 2.0), min_size=lanes, max_size=lanes))
    return owners, demand, draw(st.lists(st.floats(0.0, 2.0), min_size=lanes, max_size=lanes)), slow


@given(loaded_lanes())
def test_groups_leave_loaded_lanes_only_and_never_make_the_worst_worse(
    scene: tuple[list[int], list[float], list[float], list[float]],
) -> None:
    owners, demand, found, slow = scene

    def load(of: list[int]) -> list[float]:
        return [slow[lane] * sum(d for d, o in zip(demand, of, strict=True) if o == lane) for lane in range(len(found))]

    after = redirected_groups(owners, demand, found, slow)
    assert max(load(after)) <= max(load(owners)) + 1e-9
    assert all(found[lane] < 1.0 for _, lane in moves(owners, after)), "a full queue gets nothing"
    if max(load(owners)) <= NEAR_ENOUGH * sum(load(owners)) / len(found):
        assert after == owners, "what is even stays as it is"


def test_the_lane_of_a_heavy_group_keeps_that_group_alone() -> None:
    owners, demand = dealt_out(range(4)), [0.01] * KEY_GROUPS
    demand[0] = 0.5
    after = redirected_groups(owners, demand, [1.2, 0.0, 0.0, 0.0])
    heavy = after[0]
    beside = [group for group, lane in enumerate(after) if lane == heavy and group != 0]
    others = [sum(d for d, o in zip(demand, after, strict=True) if o == lane) for lane in range(4) if lane != heavy]
    assert len(beside) <= 1 and max(others) - min(others) <= 0.02
    assert redirected_groups(after, demand, [1.2, 0.0, 0.0, 0.0]) == after, "once is enough"


def test_a_heavy_key_is_split_over_its_own_lane_and_the_least_loaded_ones() -> None:
    owners = dealt_out(range(4))
    demand = [0.02 if owner == 1 else 0.01 for owner in owners]
    demand[70] = 0.001
    groups = split_among(5, 30.0, 10.0, owners, demand, 4)
    assert groups[0] == 5 and 70 in groups
    assert sorted(owners[group] for group in groups) == [0, 2, 3]
    assert len(split_among(5, 900.0, 10.0, owners, demand, 4)) == 4
    assert split_among(5, 9.0, 10.0, owners, demand, 4) == [5]


def test_a_split_key_is_not_light_because_its_lanes_are_behind() -> None:
    flow = _Flow(arrived=np.full(KEY_GROUPS, 600 / KEY_GROUPS), keys={7: 40.0})
    # 40 % of the 100 tuples that were served, of 600 that came; then as many are served as come.
    for lane in range(4):
        flow.add(lane, 0.1, 25)
    assert flow.came_of(7) == pytest.approx(240.0)
    flow.add(0, 0.5, 600)
    assert flow.came_of(7) == 40.0 and flow.came_of(8) == 0.0


def test_only_a_split_key_goes_to_other_groups() -> None:
    batch = pa.record_batch({"word": ["hot", "a", "hot", "b", "hot", "hot"]})
    key = int(hash_columns(batch, ("word",))[0])
    home = groups_of(batch, ("word",)).tolist()
    found = groups_with_splits(batch, ("word",), {key: [home[0], 99]}, 0).tolist()
    assert found == [home[0], home[1], 99, home[3], home[0], 99]
    to = Snapshot((0, 1), owners=[1 if group == 99 else 0 for group in range(KEY_GROUPS)], splits={key: [home[0], 99]})
    parts = split(groupings.redirection("word"), batch, to, Sender())
    assert parts[1].rows.column("word").to_pylist() == ["hot", "hot"] and parts[1].runs == ((99, 2),)


# -- in the engine


def zipf_words(count: int, seconds: float) -> Topology:
    """Every second word is the same one."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"id": numbers, "word": [word_of(int(n)) for n in numbers]}

    replay = sources.replay(constant(count / seconds, seconds), "id long, word string", make)
    return Topology("zipf").source("in", replay).topology


def word_of(number: int) -> str:
    return "hot" if number % 2 else f"w{number * 7919 % 300}"


def count_words(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
    state.n += len(rows)
    if any(row["id"] == 9001 for row in rows):
        raise ValueError("no number 9001")
    yield {"word": key, "n": state.n}


def add_part(key: str, part: Any, state: Any) -> Iterator[dict[str, Any]]:
    state.n += part.n
    yield {"word": key, "n": state.n}


def count_batch(batch: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    if 9001 in batch.column("id").to_pylist():
        raise ValueError("no number 9001")
    return counted(known, Counter(batch.column("word").to_pylist()))


def add_parts(parts: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    more: Counter[str] = Counter()
    for row in parts.to_pylist():
        more[row["word"]] += row["n"]
    return counted(known, more)


def counted(known: pa.RecordBatch, more: Counter[str]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    after = pa.RecordBatch.from_pylist(
        [{"word": row["word"], "n": row["n"] + more[row["word"]]} for row in known.to_pylist()]
    )
    return after, after


@pytest.fixture
def always_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "LR_MAX", -1.0)
    monkeypatch.setattr("elastream.engine.driver.placement.redirector.SETTLE_S", 0.2)


class Watch(Policy):
    """Decides nothing and remembers why tuples were redirected."""

    name, start = "watch", None

    def __init__(self) -> None:
        self.redirections: list[Any] = []

    def propose(self, observation: Any) -> Proposal:
        self.redirections += observation.redirections
        return Proposal()


@pytest.mark.parametrize("mode", ["rows", "arrow"])
def test_a_split_key_is_counted_exactly_while_groups_move_and_replicas_change(
    always_out_of_range: None, mode: Literal["rows", "arrow"]
) -> None:
    count, watch, chance = 12_000, Watch(), random.Random(3)
    words = zipf_words(count, 4.0)
    by_word = words.key_by("word", redirect=True, after="in")
    flow = by_word.process(
        "count",
        count_words if mode == "rows" else count_batch,
        mode=mode,
        state="n long",
        initial={"n": 0},
        schema="word string, n long",
        merge=add_part if mode == "rows" else add_parts,
        replicas=(2, 6),
        start=4,
    )
    flow.output("out")
    with LocalEngine(hosts=2).start(flow, policy=watch, td_s=0.2, benchmark_s=0) as handle:
        wait_for(lambda: any(one.split for one in watch.redirections))
        for _ in range(6):
            before = handle.totals("count").processed
            handle.scale("count", chance.randint(2, 6))
            wait_for(lambda: not handle.active or handle.totals("count").processed > before + 500)  # noqa: B023
        finish(handle)
        wanted = Counter(word_of(n) for n in range(count) if n != 9001)
        assert Counter({row["word"]: row["n"] for row in handle.state("count").to_pylist()}) == wanted
        assert handle.audit().problems == ()
        assert [row["row"] for row in handle.dead_letters().to_pylist()] == ['{"id": 9001, "word": "hot"}']
        out: Counter[str] = Counter()
        for row in handle.output("out").to_pylist():
            assert row["n"] > out[row["word"]], "what leaves is the whole of a key, and only grows"
            out[row["word"]] = row["n"]
        assert out == wanted
    assert any(one.groups for one in watch.redirections)
    assert all("is above" in one.reason for one in watch.redirections if one.groups or one.split)


def test_tuples_without_keys_are_redirected_and_come_once(always_out_of_range: None) -> None:
    flow = Topology("even")
    flow.source("in", sources.replay(constant(1000, 3.0)))
    flow.map("work", lambda row: row, after="in", grouping=groupings.redirection(), replicas=(4, 4), start=4)
    flow.output("out", after="work")
    watch = Watch()
    with LocalEngine(hosts=2).start(flow, policy=watch, td_s=0.2, benchmark_s=0) as handle:
        wait_for(lambda: watch.redirections)
        finish(handle)
        assert ids_of(handle) == each_once(3000)
    assert [one.operator for one in watch.redirections][:1] == ["work"]
    assert "tuples go to the replicas with most room" in watch.redirections[0].reason


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"merge": add_part}, "merge is for keys that are split by load; write key_by"),
        ({"merge": add_part, "redirect": True, "on_timer": add_part}, "a part of a key has no timers"),
    ],
)
def test_what_cannot_be_split_is_refused_when_it_is_declared(how: dict[str, Any], words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        redirect = how.pop("redirect", False)
        zipf_words(10, 1.0).key_by("word", redirect=redirect, after="in").process(
            "count", count_words, state="n long", schema="word string, n long", **how
        ).output("out").topology.build()
