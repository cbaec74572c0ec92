"""When lanes have keys to be woken: what a receipt says counts only for the key groups that its work has looked through."""

import math
from typing import Any

from elastream import Topology, sources
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.messages import LaneReceipt
from elastream.lanes import LaneId, LedgerState
from elastream.lanes.segments import SchemaId, Slice
from elastream.lanes.state_log import StateLog
from elastream.routing.key_groups import dealt_out
from elastream.workload import constant


def remembers(key: Any, rows: Any, state: Any) -> None: ...


def timers_of(state: LedgerState) -> LaneTimers:
    flow = Topology("timed")
    flow.source("in", sources.replay(constant(1, 1)))
    flow.key_by("id", after="in").process("count", remembers, state="n long", on_timer=remembers, replicas=(1, 4))
    return LaneTimers(flow.output("out", after="count").topology.build(), state, lambda source, part, wall_s: False)


def test_a_receipt_of_a_work_that_was_sent_before_key_groups_came_says_nothing_of_their_timers() -> None:
    state = LedgerState()
    state.owners["count"], state.logs["count"] = dealt_out(range(2)), StateLog()
    state.logs["count"].add(Slice("file", 0, 0, 0, SchemaId("x"), 0, 1, b""))
    timers, first, second = timers_of(state), LaneId("count", 0), LaneId("count", 1)
    for lane in (first, second):
        timers.groups_for_work(lane)
    nothing = [LaneReceipt("count", lane, timers=(None, None)) for lane in (0, 1)]
    timers.hear(nothing, 0.0)
    assert timers.due(0.0) == [] and timers.next_s() == math.inf
    timers.groups_for_work(first)
    state.owners["count"] = [0] * len(state.owners["count"])
    timers.groups_moved("count", {0, 1})
    timers.hear(nothing[:1], 0.0)
    assert timers.due(0.0) == [first], "the groups that it got may have keys to be woken"
    timers.groups_for_work(first)
    timers.hear(nothing[:1], 0.0)
    assert timers.due(0.0) == []
