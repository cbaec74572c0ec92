"""Watermarks: no tuple is late that its source gave in time, whatever waits, moves, stops or is silent on the way."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routes import PATIENT
from water import IDLE_S, LATENESS_S, MADE_AT, Happening, Stream, replay, window

from elastream import Topology
from elastream.engine.driver.event_time.watermarks import Watermarks
from elastream.errors import TopologyError
from elastream.lanes import LaneId
from elastream.topology import Graph, OperatorName

HOUR_S = 3600.0


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def with_two_sources(name: str, *schema: str) -> Topology:
    flow = Topology(name)
    flow.source("a", replay(*schema))
    flow.source("b", replay(*schema))
    return flow


def through_a_map() -> Graph:
    flow = Topology("one").source("a", replay()).map("m", same, replicas=2).topology
    return window(flow, "m")


def two_sources() -> Graph:
    return window(with_two_sources("two"), "a", "b")


def filtered() -> Graph:
    flow = with_two_sources("filtered")
    flow.filter("f", bool, after="b", replicas=2)
    return window(flow, "a", "f")


def parsed() -> Graph:
    """The time column is made behind two sources, by an operator that comes after another one."""
    flow = with_two_sources("parsed", "key long")
    flow.map("m", same, after=["a", "b"], replicas=2)
    flow.map("parse", same, after="m", schema=MADE_AT, replicas=2)
    return window(flow, "parse")


def mixed() -> Graph:
    flow = with_two_sources("mixed")
    flow.map("m", same, after=["a", "b"], replicas=2)
    flow.filter("f", bool, after="m", replicas=2)
    return window(flow, "f", "b")


GRAPHS = {graph.__name__: graph for graph in (through_a_map, two_sources, filtered, parsed, mixed)}


def test_rows_of_a_slow_replica_are_not_late() -> None:
    stream = Stream(through_a_map())
    for second in range(100):
        stream.give("a", [float(second), second + 0.5], {"m": [0, 1]})
        stream.serve(LaneId("m", 0), 9, {"w": [0]})
        stream.serve(LaneId("w", 0), 9, {})
        assert stream.watermark_s < 0.5, "replica 1 still has the row of second 0"
    stream.serve(LaneId("m", 1), 100, {"w": [1]})
    assert stream.watermark_s < 0.5, "they wait in front of the window"
    stream.serve(LaneId("w", 1), 100, {})
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 99.5 - LATENESS_S


def test_a_source_that_is_an_hour_behind_is_not_late() -> None:
    stream = Stream(two_sources())
    for second in range(100):
        stream.give("a", [HOUR_S + second], {"w": [0]})
        stream.give("b", [float(second)], {"w": [1]})
        stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 99.0 - LATENESS_S


def test_a_filter_that_drops_everything_does_not_hold_back_the_watermark() -> None:
    stream = Stream(filtered())
    for second in range(100):
        stream.give("a", [HOUR_S + second], {"w": [0]})
        stream.give("b", [float(second)], {"f": [second % 2]})
        stream.serve(LaneId("f", second % 2), 9, {"w": [1]}, [False])
        stream.serve(LaneId("w", 0), 9, {})
    stream.turn([])
    assert stream.now < IDLE_S, "nobody was taken for silent"
    assert stream.watermark_s == 99.0 - LATENESS_S, "it follows what enters the filter"


def test_an_operator_that_makes_event_times_of_one_input_only_does_not_wait_for_the_other_for_ever() -> None:
    stream = Stream(parsed())
    second = 0
    while stream.now < 3 * IDLE_S:
        second += 1
        stream.give("a", [HOUR_S + second], {"m": [0]})
        stream.give("b", [float(second)], {"m": [1]})
        stream.serve(LaneId("m", 0), 9, {"parse": [0]})
        stream.serve(LaneId("m", 1), 9, {"parse": [1]}, [second < 50])
        stream.serve(LaneId("parse", 0), 9, {"w": [0]})
        stream.serve(LaneId("parse", 1), 9, {"w": [1]})
        stream.serve_all([])
        stream.turn([])
        if second < 50:
            assert stream.watermark_s <= second - LATENESS_S
    assert stream.late == [] and stream.watermark_s == HOUR_S + second - LATENESS_S


def test_a_silent_source_holds_back_the_watermark_for_idle_s_and_what_it_gave_before_is_not_late() -> None:
    stream = Stream(two_sources())
    stream.give("b", [0.0, 1.0], {"w": [1]})
    began_s, second = stream.now, 0
    while stream.now <= began_s + IDLE_S:
        second += 1
        stream.give("a", [HOUR_S + second], {"w": [0]})
        stream.serve(LaneId("w", 0), 9, {})
        assert stream.watermark_s <= 1.0 - LATENESS_S
    stream.give("a", [2 * HOUR_S], {"w": [0]})
    assert stream.watermark_s <= 1.0 - LATENESS_S, "its rows wait"
    stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 2 * HOUR_S - LATENESS_S


def test_a_source_with_rows_that_were_not_read_is_not_silent() -> None:
    stream = Stream(two_sources())
    stream.unread = {"b"}
    stream.give("b", [0.0], {"w": [1]})
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.serve_all([])
    stream.turn([], seconds=10 * IDLE_S)
    stream.give("a", [HOUR_S + 1], {"w": [0]})
    stream.serve_all([])
    assert stream.watermark_s == -LATENESS_S
    stream.unread = set()
    stream.turn([])
    assert stream.watermark_s == HOUR_S + 1 - LATENESS_S


def test_a_pause_of_all_sources_does_not_let_the_watermark_pass_the_slower_one() -> None:
    stream = Stream(two_sources())
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.give("b", [1.0], {"w": [1]})
    stream.serve_all([])
    stream.turn([], seconds=10 * IDLE_S)
    assert stream.watermark_s == 1.0 - LATENESS_S
    stream.give("b", [2.0], {"w": [1]})
    stream.give("a", [HOUR_S + 1], {"w": [0]})
    stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 2.0 - LATENESS_S


def test_a_source_that_has_not_begun_holds_back_the_watermark() -> None:
    stream = Stream(two_sources())
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.serve_all([])
    stream.turn([])
    assert stream.watermark_s == -math.inf
    stream.turn([], seconds=IDLE_S + 1)
    stream.give("a", [HOUR_S + 1], {"w": [0]})
    stream.serve_all([])
    stream.turn([])
    assert stream.watermark_s == HOUR_S + 1 - LATENESS_S


def test_a_source_that_has_ended_does_not_hold_back_the_watermark() -> None:
    stream = Stream(two_sources())
    stream.state.sources["b"]["next"] = 1000 * 1000 - 1
    stream.give("b", [5.0], {"w": [1]})
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.serve(LaneId("w", 0), 9, {})
    assert stream.watermark_s == -math.inf, "its last row waits"
    stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == HOUR_S - LATENESS_S


def test_a_part_of_a_source_that_is_behind_is_not_late() -> None:
    stream = Stream(two_sources())
    stream.state.sources["a"]["partitions"] = 2
    for second in range(50):
        stream.give("b", [2 * HOUR_S], {"w": [0]})
        stream.give("a", [HOUR_S + second], {"w": [0]}, part="topic/0")
        if not second:
            assert stream.watermark_s == -math.inf, "the other partition was not heard of"
        stream.give("a", [float(second)], {"w": [1]}, part="topic/1")
        stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 49.0 - LATENESS_S


def test_a_range_of_a_replay_that_comes_late_is_waited_for() -> None:
    stream = Stream(two_sources())
    span = stream.postpone("a", 5)
    stream.give("a", [100.0], {"w": [0]})
    stream.give("b", [HOUR_S], {"w": [0]})
    stream.serve_all([])
    stream.turn([])
    assert stream.watermark_s == -math.inf
    stream.give_postponed("a", span, [1.0, 2.0, 3.0, 4.0, 5.0], {"w": [1]})
    stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 100.0 - LATENESS_S


def test_a_retired_lane_with_rows_is_waited_for_and_an_empty_one_is_not() -> None:
    stream = Stream(through_a_map())
    stream.give("a", [0.0, 100.0], {"m": [0, 1]})
    stream.move("w", 1, 0)
    stream.serve(LaneId("m", 1), 1, {"w": [3]})
    stream.serve(LaneId("w", 3), 1, {})
    assert stream.watermark_s == -math.inf
    stream.serve(LaneId("m", 0), 1, {"w": [1]})
    # Key groups take the row along to another lane before it is served.
    stream.move("w", 1, 2)
    assert stream.watermark_s == -math.inf
    stream.serve(LaneId("w", 2), 1, {})
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 100.0 - LATENESS_S


def test_a_driver_that_starts_again_goes_on_with_the_watermark_of_the_ledger() -> None:
    stream = Stream(two_sources())
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.give("b", [100.0, 101.0], {"w": [0, 1]})
    stream.serve(LaneId("w", 0), 9, {})
    stream.serve(LaneId("w", 1), 9, {})
    stream.turn([])
    assert stream.watermark_s == 101.0 - LATENESS_S
    stream.give("b", [95.0], {"w": [1]})
    stream.restart()
    stream.give("a", [HOUR_S + 100], {"w": [0]})
    stream.serve(LaneId("w", 0), 9, {})
    stream.turn([])
    assert stream.watermark_s == 101.0 - LATENESS_S, "nothing was heard of b"
    stream.give("b", [102.0], {"w": [1]})
    stream.serve_all([])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 102.0 - LATENESS_S


def test_a_newer_time_does_not_overtake_the_rows_that_came_with_it() -> None:
    stream = Stream(filtered())
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.give("b", [0.0], {"f": [0]})
    stream.give("b", [50.0], {"f": [0]})
    stream.serve(LaneId("f", 0), 1, {"w": [0]})
    stream.serve_all([])
    stream.turn([])
    assert stream.watermark_s == -LATENESS_S, "the other row waits in front of the filter"
    stream.serve_all(["f"])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 50.0 - LATENESS_S


def test_a_source_that_sends_once_between_two_pauses_is_waited_for() -> None:
    stream = Stream(filtered())
    stream.give("b", [0.0], {"f": [0]})
    stream.serve_all(["f"])
    stream.give("b", [0.0], {"f": [0]})
    stream.turn([], seconds=IDLE_S + 1)
    stream.give("b", [1.0], {"f": [0]})
    stream.turn([], seconds=IDLE_S + 1)
    stream.give("a", [HOUR_S], {"w": [0]})
    stream.serve(LaneId("f", 0), 1, {"w": [0]})
    stream.serve_all([])
    stream.turn([])
    assert stream.watermark_s <= 1.0 - LATENESS_S
    stream.serve_all(["f"])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == HOUR_S - LATENESS_S


def test_event_times_that_an_operator_moves_back_are_followed() -> None:
    stream = Stream(through_a_map())
    for second in range(100):
        stream.give("a", [float(second)], {"m": [0]})
        for row in stream.rows[LaneId("m", 0)]:
            row.at_s -= HOUR_S
        stream.serve_all(["m"])
    stream.turn([])
    assert stream.late == [] and stream.watermark_s == 99.0 - HOUR_S - LATENESS_S


@PATIENT
@given(name=st.sampled_from(sorted(GRAPHS)), seed=st.integers(0, 2**32), steps=st.integers(1, 150))
def test_nothing_is_late_that_came_within_the_lateness_of_its_source(name: str, seed: int, steps: int) -> None:
    chance, stream = random.Random(seed), Stream(GRAPHS[name]())
    happening = {source.name: Happening(chance, chance.choice([0.0, HOUR_S])) for source in stream.graph.sources}
    operators = [operator.name for operator in stream.graph.served if operator.name != "out"]
    postponed: list[tuple[OperatorName, tuple[int, int], list[float]]] = []

    def anywhere(operator: str) -> dict[str, list[int]]:
        return {edge.target: [chance.randrange(3) for _ in range(5)] for edge in stream.graph.edges_from(operator)}

    for _ in range(steps):
        what, source = chance.random(), chance.choice(list(happening))
        if what < 0.3:
            stream.give(source, happening[source].take(chance.randint(1, 5)), anywhere(source))
        elif what < 0.35:
            times = happening[source].take(3)
            postponed.append((source, stream.postpone(source, 3), times))
        elif what < 0.4 and postponed:
            source, span, times = postponed.pop(chance.randrange(len(postponed)))
            stream.give_postponed(source, span, times, anywhere(source))
        elif what < 0.45:
            stream.move(chance.choice(operators), chance.randrange(3), chance.randrange(3, 5))
        elif what < 0.47:
            stream.restart()
        else:
            lane = LaneId(chance.choice(operators), chance.randrange(5))
            kept = None if name != "filtered" else [chance.random() < 0.5 for _ in range(3)]
            stream.serve(lane, chance.randint(1, 9), anywhere(lane.operator), kept)
    for source, span, times in postponed:
        stream.give_postponed(source, span, times, anywhere(source))
    last_s = math.inf
    for source, events in happening.items():
        times = events.take(1)
        stream.give(source, times, anywhere(source))
        last_s = min(last_s, *times)
    assert stream.now < IDLE_S, "nobody was taken for silent"
    stream.serve_all([operator for operator in operators if operator != "w"])
    stream.turn([])
    assert stream.late == []
    newest_s = min(events.newest_s for events in happening.values())
    # A driver that has started again knows of the last rows only.
    assert last_s <= stream.watermark_s + LATENESS_S + 1e-6 and stream.watermark_s + LATENESS_S <= newest_s + 1e-6


def test_a_graph_without_event_times_has_no_watermarks() -> None:
    graph = Topology("none").source("a", replay()).output("out").topology.build()
    assert not Watermarks(graph, Stream(two_sources()).state, (), lambda _: 0.0, lambda *_: False)


@pytest.mark.parametrize("idle_s", [-1.0, math.nan])
def test_an_idle_time_that_cannot_be_is_refused(idle_s: float) -> None:
    flow = Topology("idle")
    flow.source("a", replay())
    flow.key_by("key", after="a").window("w", time="at", every_s=60.0, idle_s=idle_s, aggregate={"n": "count()"})
    with pytest.raises(TopologyError, match="idle_s must be 0 or more, and needs event_time"):
        flow.output("out", after="w").topology.build()
