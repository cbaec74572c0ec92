"""The record of a run on the engine: what waits for a busy replica, the spikes that were put on, CPU and memory."""

import time
from pathlib import Path
from typing import Any

import pytest
from flows import finish

from elastream import Topology, sources
from elastream.engine.recording import Recorder, events_of
from elastream.report.write import make_report
from elastream.testing import LocalEngine
from elastream.workload import VolumeSpike, constant, with_spikes


def takes_ten_ms(row: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.01)
    return row


def test_a_record_knows_what_waits_which_spikes_there_were_and_what_it_cost(tmp_path: Path) -> None:
    arrivals = with_spikes(constant(40, 5), [VolumeSpike(at_s=2, duration_s=1, peak_s=1, magnitude=6)])
    flow = Topology("t")
    flow.source("in", sources.replay(arrivals))
    flow.map("slow", takes_ten_ms, after="in", replicas=(1, 1)).output("out")
    recorder = Recorder(graph := flow.build())
    with LocalEngine().start(graph, str(tmp_path / "base"), listeners=[recorder]) as handle:
        finish(handle)
        events = events_of(handle.audit())
    record = recorder.record
    ((from_s, to_s),) = record.spikes
    # Seconds of the record, which begins with its first tick, a little after the replay.
    assert 1.0 < from_s <= 2.0 and to_s - from_s == pytest.approx(1.0)
    samples = record.series.operators["slow"]
    assert all(sample.waiting is not None and 0 <= sample.waiting <= sample.queued for sample in samples)
    calm = [sample.waiting or 0 for sample in samples if sample.t_s < from_s - 0.2]
    spike = [sample.waiting or 0 for sample in samples if from_s < sample.t_s < to_s + 0.5]
    # Forty a second of 10 ms hardly wait, also on a busy machine; then more come than can be served.
    assert sorted(calm)[len(calm) // 2] <= 10 and max(spike) > 50
    usage = make_report(record, events)["usage"]
    assert usage["cpu_s"] > 0 and usage["cores"] > 0 and usage["memory_mb"] > 20


def test_every_tuple_is_in_the_record_from_the_first_tick_to_the_last(tmp_path: Path) -> None:
    flow = Topology("t")
    flow.source("in", sources.replay(constant(100, 5)))
    flow.map("same", lambda row: row, after="in", replicas=(1, 2)).output("out")
    recorder = Recorder(graph := flow.build())
    with LocalEngine(virtual=True).start(graph, str(tmp_path / "base"), listeners=[recorder]) as handle:
        finish(handle)
    served = {name: sum(s.processed for s in samples) for name, samples in recorder.record.series.operators.items()}
    assert served == {"in": 500, "same": 500, "out": 0}
    assert recorder.record.latencies.count == 500
