"""Tuples per second through four operators of Elastream's, doing nothing or 20 µs of work a tuple in each."""

from dataclasses import dataclass

from elastream.engine.driver.ports import Tick
from elastream.errors import RunFailed
from elastream.report.latency import Latencies
from elastream.workload import constant
from elastream_lab.bench.common.watch import finished, four_operators, missing, watched
from elastream_lab.bench.common.work import nothing, sink_nothing, sink_spin, spin

FEWEST_TICKS = 3
"""A rate needs a first tick, a last one and one between, however slow the machine."""

STEPS = {"empty": (nothing, sink_nothing), "20us": (spin, sink_spin)}


@dataclass(frozen=True)
class Throughput:
    """What one system sustained with one kind of work, in the configuration that was best for it."""

    system: str
    """`elastream`, or `plain` for one Structured Streaming query."""
    work: str
    config: str
    per_second: float
    seconds: float
    """How long it was measured, after the warm-up."""
    missing: int
    tried: tuple[tuple[str, float], ...] = ()
    """Other configurations and what they gave."""


@dataclass(frozen=True)
class Sustained:
    """A fixed rate, offered for a while, then everything served to the end."""

    offered_per_s: float
    warm_up_s: float
    seconds: float
    """How long it was offered after the warm-up; the next three figures are of this time."""
    finished_per_s: float
    latency_mean_ms: float
    latency_p95_ms: float
    queued_at_end: int
    """Tuples in all lanes when the offer ended."""
    drained_s: float
    """From then until the last tuple was served."""
    entered: int
    finished: int
    dropped: int
    missing: int
    problems: int
    """What the audit of the base complained of."""

    @property
    def is_whole(self) -> bool:
        """Every tuple that was offered was served."""
        offered = int(self.offered_per_s * (self.warm_up_s + self.seconds))
        return self.entered == self.finished == offered and not self.problems


def measure_throughput(work: str, replicas: int, offered_per_s: float, warm_up_s: float, seconds: float) -> Throughput:
    """Offer more than can be served; count what is finished in the middle of the run."""
    step, sink = STEPS[work]
    arrivals = constant(offered_per_s, warm_up_s + seconds + 60)
    with watched(four_operators(arrivals, step, sink, replicas=replicas)) as run:
        begin = run.origin_s() + warm_up_s
        run.wait(lambda: _is_enough(_from(run.ticks, begin), seconds), warm_up_s + seconds + 120, "enough ticks")
        slots = str(run.handle.spark.sparkContext.master)
        audit = run.stop()
    inside = _from(run.ticks, begin)
    config = f"{replicas} replicas an operator, {slots}"
    return Throughput("elastream", work, config, _finished_per_s(inside), _span_s(inside), missing(audit))


def measure_sustained(replicas: int, offered_per_s: float, warm_up_s: float, seconds: float) -> Sustained:
    """Offer a rate, wait until all is served, audit the base."""
    arrivals = constant(offered_per_s, warm_up_s + seconds)
    with watched(four_operators(arrivals, nothing, sink_nothing, replicas=replicas)) as run:
        begin = run.origin_s() + warm_up_s
        run.wait(lambda: not run.handle.active, arrivals.seconds * 5 + 120, "all tuples to be served")
        audit = run.stop()
    inside = _from([tick for tick in run.ticks if tick.ended_s <= begin + seconds], begin)
    if len(inside) < FEWEST_TICKS:
        raise RunFailed(f"bench: expected {FEWEST_TICKS} ticks or more in {seconds:.0f} s, got {len(inside)}")
    latencies = Latencies()
    for tick in inside[1:]:
        latencies.merge(tick.result.latencies)
    return Sustained(
        offered_per_s,
        warm_up_s,
        seconds,
        _finished_per_s(inside),
        latencies.mean_s * 1e3,
        latencies.percentile_s(0.95) * 1e3,
        sum(inside[-1].queued.values()),
        max(tick.ended_s for tick in run.ticks if finished(tick)) - begin - seconds,
        audit.entered,
        audit.finished,
        audit.dropped,
        missing(audit),
        len(audit.problems),
    )


def _from(ticks: list[Tick], begin_s: float) -> list[Tick]:
    return [tick for tick in ticks if tick.ended_s >= begin_s]


def _is_enough(ticks: list[Tick], seconds: float) -> bool:
    return len(ticks) >= FEWEST_TICKS and _span_s(ticks) >= seconds


def _span_s(ticks: list[Tick]) -> float:
    return ticks[-1].ended_s - ticks[0].ended_s


def _finished_per_s(ticks: list[Tick]) -> float:
    """From the end of the first tick to the end of the last: what the first one finished came before."""
    return sum(finished(tick) for tick in ticks[1:]) / _span_s(ticks)
