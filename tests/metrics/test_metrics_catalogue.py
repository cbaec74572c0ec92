"""The catalogue of metrics: names that Prometheus expects, samples that a run gives, and a page that is not stale."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from elastream import Topology, sources
from elastream.control import HostObservation
from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.status import HostStatus, LaneStatus, RunStatus, WorkStatus
from elastream.engine.messages import Usage
from elastream.engine.recording import Recorder
from elastream.fleet import Level, LevelState
from elastream.lanes import OperatorCounts
from elastream.lanes.segments import LaneId
from elastream.metrics import catalogue as c
from elastream.metrics.catalogue import METRICS, Histogram, Metric, MetricKind, MetricSample
from elastream.metrics.from_observation import observation_samples
from elastream.metrics.from_record import histogram, record_samples
from elastream.metrics.from_status import COUNTS, status_samples
from elastream.metrics.reference import main, page
from elastream.report import Record
from elastream.report.latency import Latencies
from elastream.report.scores.containers import FleetSample
from elastream.testing import LocalEngine, observation, operator, source
from elastream.workload import constant

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "metrics.md"

ENDINGS = {"seconds": "_seconds", "bytes": "_bytes", "ratio": "_ratio", "tuples": "_tuples"}


def by_key(samples: Iterable[MetricSample]) -> dict[tuple[Metric, tuple[str, ...]], float | Histogram]:
    """Each metric at most once for the same labels."""
    found = list(samples)
    assert Counter((sample.metric, sample.labels) for sample in found).most_common(1)[0][1] == 1
    assert all(len(sample.labels) == len(sample.metric.labels) for sample in found)
    return {(sample.metric, sample.labels): sample.value for sample in found}


def test_the_page_of_the_documentation_is_that_of_the_catalogue(tmp_path: Path) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"stale; python -m elastream.metrics.reference {PAGE}"
    assert all(f"| `{metric.name}` |" in page() for metric in METRICS)
    assert main([str(tmp_path / "page.md")]) == 0 and (tmp_path / "page.md").read_text(encoding="utf-8") == page()
    assert main([]) == 2


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_name_says_kind_and_unit_as_prometheus_expects(metric: Metric) -> None:
    assert re.fullmatch(r"elastream(_[a-z0-9]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    if metric.unit in ENDINGS:
        assert metric.name.removesuffix("_total").endswith(ENDINGS[metric.unit])
    assert metric.meaning.endswith(".") and len(metric.meaning) < 120 and "|" not in metric.meaning
    assert set(metric.labels) <= {"operator", "lane", "source", "part", "host", "machine", "level", "phase"}


def test_every_entry_of_the_catalogue_is_listed_once() -> None:
    entries = [value for value in vars(c).values() if isinstance(value, Metric)]
    assert sorted(METRICS, key=str) == sorted(entries, key=str)
    assert len({metric.name for metric in METRICS}) == len(METRICS) >= 40
    assert set(COUNTS) == set(msgspec.structs.asdict(OperatorCounts()))


FULL = RunStatus(
    entry=41,
    phase=Phase.RUNNING,
    replicas={"a": 2},
    totals={"a": OperatorCounts(received=10, processed=9, failed=1, busy_s=0.5)},
    queued={"a": 4, "out": 7},
    lanes={LaneId("a", 0): LaneStatus(3, 1), LaneId("a", 1): LaneStatus(1, 1)},
    outputs=("out",),
    service_s={"a": 0.05},
    unread={"in": 6},
    batch=3,
    hosts=(
        HostStatus(1, "x", 7, "here", "", False, 2, Usage(1 << 20, 0.5, 0.25, 0)),
        HostStatus(2, "y", 8, "here", "", True, 0, None),
    ),
    works=(WorkStatus("a", (0,), 3, 0.0, 1),),
    fleet=(LevelState(Level.HOST, 2, 3, 4, 8, 1.5),),
    ticks=100,
)


def test_a_status_an_observation_and_a_record_fill_all_metrics() -> None:
    lagging = replace(source("in", 100), lag={"0": 8, "1": 9})
    seen = observation(lagging, operator("a", {"in": 100}, replicas=2, service_ms=10.0), seconds=5.0)
    seen = replace(seen, hosts=(HostObservation(1, "here", 2.0, 1.5),))
    record = Record("flow", ("in",), cpu_s=1.5, memory_bytes=1 << 30)
    record.fleet.append(FleetSample(1.0, {}, 0.75))
    values = by_key([*status_samples(FULL), *record_samples(record)])
    values |= by_key(observation_samples(seen))
    assert {metric for metric, _ in values} == set(METRICS)
    assert values[c.OPERATOR_BUSY_RATIO, ("a",)] == pytest.approx(0.1)
    assert values[c.RUN_PHASE, ("running",)] == 1.0 and values[c.RUN_PHASE, ("over",)] == 0.0
    assert (values[c.ENTRIES, ()], values[c.IN_FLIGHT, ()], values[c.QUERY_BATCH, ()]) == (42, 4, 3)
    assert values[c.OPERATOR_INPUT, ("a",)] == 10 and values[c.OPERATOR_DEAD_LETTERS, ("a",)] == 1
    assert values[c.LANE_QUEUED, ("a", "1")] == 1 and values[c.OPERATOR_WORKS, ("a",)] == 1
    assert values[c.HOST_LEAVING, ("2", "here")] == 1.0 and values[c.HOST_MEMORY, ("1", "here")] == 1 << 20
    levels = [values[metric, ("host",)] for metric in (c.LEVEL_PLANNED, c.LEVEL_REQUESTED, c.LEVEL_READY, c.LEVEL_MAX)]
    assert levels == [4, 3, 2, 8]
    assert values[c.SOURCE_LAG, ("in", "1")] == 9 and values[c.COST, ()] == 0.75


def test_what_is_not_known_has_no_sample() -> None:
    metrics = {sample.metric for sample in status_samples(RunStatus())}
    assert c.QUERY_BATCH not in metrics and c.HOST_MEMORY not in metrics
    metrics = {sample.metric for sample in record_samples(Record("flow", ()))}
    assert metrics == {c.LATENCY, c.DECISIONS, c.RESCALES}


def test_the_histogram_of_latencies_is_exact_at_its_bounds() -> None:
    made = histogram(Latencies({-3: 1, 14: 2, 15: 4, 147: 8, 148: 16}, 3.5, 200.0))
    assert made.counts[0] == 3 and made.counts[1] == 7 and made.counts[-2:] == (7, 15)
    assert (made.count, made.sum, len(made.bounds)) == (31, 3.5, len(made.counts))
    assert all(1.9 < after / before < 2.0 for before, after in zip(made.bounds, made.bounds[1:], strict=False))
    assert made.bounds[0] == pytest.approx(0.00038, rel=0.01)


def test_the_metrics_of_a_run_add_up(tmp_path: Path) -> None:
    source = Topology("t").source("in", sources.replay(constant(100, 5)))
    flow = source.map("same", lambda row: row, replicas=(1, 4)).output("out").topology
    recorder = Recorder(graph := flow.build())
    engine = LocalEngine(virtual=True)
    with engine.start(
        graph, str(tmp_path / "base"), policy="static:replicas=2", td_s=1.0, listeners=[recorder]
    ) as handle:
        assert handle.await_end(60)
    values = by_key([*status_samples(handle.status), *record_samples(recorder.record)])
    assert values[c.OPERATOR_PROCESSED, ("in",)] == values[c.OPERATOR_INPUT, ("same",)] == 500
    assert values[c.OPERATOR_FINISHED, ("same",)] == 500
    assert values[c.OPERATOR_REPLICAS, ("same",)] == 2
    assert values[c.IN_FLIGHT, ()] == 0
    latency = values[c.LATENCY, ()]
    assert isinstance(latency, Histogram) and latency.count == 500 == latency.counts[-1]
    assert values[c.DECISIONS, ()] == recorder.record.healths.total > 0
