"""The tweets workload that Elastream, Flink and Storm were measured with: four operators of 5 ms, sized by PSPS."""

from dataclasses import dataclass
from tempfile import TemporaryDirectory

from elastream.applications.load import load_app
from elastream.engine import session, start
from elastream.engine.recording import Recorder
from elastream.report.scores.metrics import saved_resources, throughput_degradation
from elastream.settings import QueueSettings, Settings
from elastream_lab.bench.common.cpu import cpu_s
from elastream_lab.bench.common.watch import missing
from elastream_lab.bench.engine.tweets_load import POOL, SERVICE_MS, tweet_arrivals


@dataclass(frozen=True)
class TweetsRun:
    """The workload of the suite `psps`."""

    seconds: float
    latency_mean_ms: float
    latency_p95_ms: float
    saved: float
    processed: float
    degradation: float
    cpu_s: float
    """Of all processes, from the first tuple to the last."""
    rescales: int
    missing: int
    doubled: int


def measure_tweets(seconds: float) -> TweetsRun:
    """The first `seconds` of the trace as it is played."""
    arrivals = tweet_arrivals(seconds)
    spark = session()
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        options = {
            "database": f"{folder}/results.sqlite",
            "service_ms": SERVICE_MS,
            "pool": POOL,
            "grouping": "load_balancing",
        }
        graph = load_app("tweets", arrivals, options)
        settings = Settings(queues=QueueSettings(t_out_s=30, q_size=100_000, on_full="drop"))
        recorder = Recorder(graph)
        with start(
            graph, f"{folder}/base", spark=spark, policy="psps", td_s=2.0, settings=settings, listeners=[recorder]
        ) as handle:
            while handle.active and not handle.totals("tweets").processed:
                handle.await_end(0.05)
            before_s = cpu_s()
            handle.await_end(seconds * 3 + 60)
            used_s = cpu_s() - before_s
            audit = handle.audit()
    record = recorder.record
    latencies = record.latencies
    return TweetsRun(
        arrivals.seconds,
        latencies.mean_s * 1e3,
        latencies.percentile_s(0.95) * 1e3,
        saved_resources(record.series, record.pools, POOL * 4),
        audit.finished / audit.entered if audit.entered else 0.0,
        throughput_degradation(record.series, record.sources, record.interval_s),
        used_s,
        len(record.rescales),
        missing(audit),
        audit.duplicates,
    )
