"""The report: samples become numbers, files and a picture that can be opened."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from elastream.report import Events, Record, Rescale, Sample, Series, write_report
from elastream.report.files import read_record
from elastream.report.latency import MOST_POINTS, Latencies, LatencyLine
from elastream.report.series import MOST_SAMPLES


def sample(t_s: float, processed: int = 10, queued: int = 0, replicas: int = 1, *, source: bool = False) -> Sample:
    entered, finished = (processed, 0) if source else (0, processed)
    return Sample(t_s, 0.5, processed, processed, 0, queued, replicas, 0.1, entered, finished)


def record() -> Record:
    made = Record("a run", ("in",), pools={"work": 5})
    for n in range(1, 41):
        made.series.add("in", sample(n / 2, source=True))
        made.series.add("work", sample(n / 2, queued=n, replicas=1 if n <= 20 else 3))
        made.tick_ms.append(100.0 + n)
        made.latencies.add(np.full(10, 0.25))
        made.latency_line.add(n / 2, made.latencies)
    made.rescales.append(Rescale(10.0, "work", 1, 3, "by hand"))
    made.rescale_ticks_ms.append(121.0)
    return made


def test_the_report_says_what_the_samples_say(tmp_path: Path) -> None:
    report = write_report(record(), Events(400, 390, 4, 6, 0), tmp_path, r_over=5)
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert report["events"] == {
        "entered": 400,
        "finished": 390,
        "dropped": 4,
        "queued": 6,
        "duplicates": 0,
        "created": 0,
        "dead_letters": 0,
    }
    assert report["processed_ratio"] == 0.975
    # All that entered came out in the same interval.
    assert report["throughput_degradation"] == 0.0
    # Two replicas on the average, of five.
    assert report["saved_resources"] == 0.6
    # Twenty steps of half a second with one replica, twenty with three; a source has none.
    assert report["replica_seconds"] == 10 + 30
    assert report["operators"]["work"]["replicas_mean"] == 2.0
    assert report["operators"]["work"]["queued_max"] == 40
    assert report["operators"]["work"]["service_ms"] == 10.0
    assert report["ticks"] == {"count": 40, "p50_ms": 120.5, "p95_ms": 138.05, "max_ms": 140.0}
    assert report["rescale_pause_ms"] == {"p50": 121.0, "max": 121.0}
    assert report["decisions"] == [{"t_s": 10.0, "operator": "work", "before": 1, "after": 3, "reason": "by hand"}]
    assert report["latency_ms"]["mean"] == 250.0


def test_the_files_can_be_opened_again(tmp_path: Path) -> None:
    made = record()
    write_report(made, Events(400, 400, 0, 0, 0), tmp_path)
    read, points = read_record(tmp_path / "series.parquet")
    assert read.series.operators == made.series.operators
    assert (read.name, read.sources, read.pools, read.interval_s, read.policy) == (
        "a run",
        ("in",),
        {"work": 5},
        5.0,
        "by hand",
    )
    assert points == made.latency_line.points() and len(points) == 40
    assert points[-1].mean_s == pytest.approx(0.25)
    picture = imread(tmp_path / "report.png")
    assert picture.shape[0] > 500 and len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 50


def test_a_long_run_is_thinned_out_but_its_sums_stay() -> None:
    series = Series()
    count = MOST_SAMPLES * 3
    for n in range(count):
        series.add("work", sample(n / 2, processed=1))
    samples = series.operators["work"]
    assert len(samples) <= MOST_SAMPLES
    assert sum(s.processed for s in samples) == count
    assert sum(s.seconds for s in samples) == count * 0.5
    assert [s.t_s for s in samples] == sorted(s.t_s for s in samples)


def test_the_latencies_of_a_long_run_are_merged_not_lost() -> None:
    line = LatencyLine()
    for n in range(3 * MOST_POINTS):
        its = Latencies()
        its.add(np.full(2, 0.1 if n % 2 else 0.3))
        line.add(float(n), its)
    line.add(1e9, Latencies())
    points = line.points()
    assert len(points) <= MOST_POINTS
    assert sum(point.count for point in points) == 6 * MOST_POINTS
    assert points[0].mean_s == pytest.approx(0.2)
    assert [point.t_s for point in points] == sorted(point.t_s for point in points)
    assert points[-1].t_s == 3 * MOST_POINTS - 1


def test_late_tuples_are_counted_per_operator_and_older_records_have_none() -> None:
    series = Series()
    for late in (2, 3):
        series.add("window", Sample(1.0, 1.0, 10, 8, late, 0, 1, 0.1, late=late))
    table = series.to_table()
    again = Series.from_table(table).operators["window"]
    assert [sample.late for sample in again] == [2, 3] and again[0].merged(again[1]).late == 5
    older = Series.from_table(table.drop_columns(["late"])).operators["window"]
    assert [sample.late for sample in older] == [0, 0]
