"""The recorder of a run on the engine: a listener that feeds the recorder of the report."""

import logging
import threading
import time

from elastream.control import JournalEntry
from elastream.engine.driver.ports import Tick
from elastream.engine.handle import RunHandle, RunListener
from elastream.engine.measure.usage import UsageMeter
from elastream.lanes import Audit, OperatorCounts
from elastream.report import Events, Record, Rescale, Sample
from elastream.report.latency import Latencies
from elastream.report.recorder import RunRecorder
from elastream.topology import Graph, Kind
from elastream.workload.replay import Replay

log = logging.getLogger("elastream.measure")

USAGE_S = 0.5
"""Between two looks at CPU and memory."""

SAMPLE_S = 0.1
"""Ticks are added up to samples of about this length: there are hundreds a second."""

DIAGNOSE_S = 1.0
"""Between two diagnoses of a run without a policy."""

BY_HAND = "by hand"

SHORTEST_S = 1e-3
"""Of a sample: a run may end with its first tick."""


class Recorder(RunListener):
    """Listens to a run from its first tick on and writes down what happens: `run(graph, listeners=[recorder])`."""

    def __init__(self, graph: Graph) -> None:
        self._operators = [operator.name for operator in graph.operators]
        pools: dict[str, int] = {o.name: o.replicas.most for o in graph.served if o.kind is not Kind.OUTPUT}
        self._recorder = RunRecorder(graph.name, tuple(source.name for source in graph.sources), pools)
        self._start_s: float | None = None
        self._began_s = 0.0
        self._replicas: dict[str, int] = {}
        self._counts: dict[str, OperatorCounts] = {}
        self._latencies = Latencies()
        self._ticks = 0
        self._started: RunHandle | None = None
        self._last: Tick | None = None
        self._moves = 0
        self._diagnosed_s = 0.0
        self._outputs = frozenset(o.name for o in graph.served if o.kind is Kind.OUTPUT)

    def on_start(self, handle: RunHandle) -> None:
        self._started = handle
        self.record.policy, self.record.interval_s = handle.policy, handle.td_s
        self.record.base = str(handle.store)
        threading.Thread(target=self._watch_usage, name="elastream-usage", daemon=True).start()

    @property
    def record(self) -> Record:
        return self._recorder.record

    @property
    def _handle(self) -> RunHandle:
        assert self._started is not None, "a recorder listens to a run: run(..., listeners=[recorder])"
        return self._started

    def on_end(self, handle: RunHandle) -> None:
        """Record what came after the last sample."""
        if (
            self._last is not None
            and self._start_s is not None
            and (self._counts or self._last.ended_s > self._began_s)
        ):
            self._end_sample(self._last, self._last.ended_s - self._start_s)
        self._recorder.end()
        if self._last is not None:
            self.record.kept = {
                name: rows for name in sorted(self._outputs) if (rows := self._last.queued.get(name, 0))
            }

    def on_tick(self, tick: Tick) -> None:
        self._last = tick
        if any(counts.failed for counts in tick.result.counts.values()):
            self.record.dead_letters, self.record.failures = self._handle.new_dead_letters, list(self._handle.failures)
        for name, counts in tick.result.counts.items():
            self._counts.setdefault(name, OperatorCounts()).add(counts)
        self._latencies.merge(tick.result.latencies)
        if self._start_s is None:
            # Time begins when the first tick is over; what it did counts in the first sample.
            self._start_s = self._began_s = tick.ended_s
            self._replicas = dict(tick.replicas)
            self.record.spikes = self._injected(tick.ended_s)
            return
        t_s, length_ms = tick.ended_s - self._start_s, (tick.ended_s - tick.started_s) * 1e3
        rescales = [
            Rescale(t_s, name, self._replicas[name], size, tick.resized.get(name, "as the topology says"))
            for name, size in tick.replicas.items()
            if size != self._replicas.get(name, size)
        ]
        self._recorder.add_rescales(self._ticks, rescales)
        self._recorder.add_ticks(self._ticks, [length_ms])
        self._ticks += 1
        if rescales:
            self._replicas = dict(tick.replicas)
        if rescales or tick.ended_s - self._began_s >= SAMPLE_S:
            self._end_sample(tick, t_s)

    def _end_sample(self, tick: Tick, t_s: float) -> None:
        seconds, unread = max(tick.ended_s - self._began_s, SHORTEST_S), self._handle.status.unread
        # A source that full lanes hold up waits for replicas; another one is about to be read.
        held = self._handle.settings.queues.q_size and self._handle.settings.queues.on_full == "wait"
        samples: dict[str, Sample] = {}
        for name in self._operators:
            counts = self._counts.get(name) or OperatorCounts()
            is_source = name in self.record.sources
            samples[name] = Sample(
                t_s,
                seconds,
                counts.processed if is_source else counts.received,
                counts.processed,
                counts.late + counts.overflowed,
                unread.get(name, 0) if is_source else self._queued(tick, name),
                tick.replicas.get(name, 1),
                counts.busy_s,
                counts.entered,
                counts.finished,
                (unread.get(name, 0) if held else 0) if is_source else tick.waiting.get(name, 0),
                counts.late,
            )
        self._recorder.add_samples(t_s, samples, self._latencies)
        self._diagnose(t_s)
        moves = [moved for moved in self._handle.state_moves if moved.number > self._moves]
        self._recorder.add_state_moves(t_s, moves)
        self._moves = max((moved.number for moved in moves), default=self._moves)
        self._began_s, self._counts, self._latencies = tick.ended_s, {}, Latencies()

    def _queued(self, tick: Tick, name: str) -> int:
        """Tuples that wait for an operator. Rows that an output keeps for its readers wait for none."""
        return 0 if name in self._outputs else tick.queued.get(name, 0)

    def _diagnose(self, t_s: float) -> None:
        """Every second, if no policy decides; else each decision is diagnosed."""
        if self.record.policy == BY_HAND and t_s - self._diagnosed_s >= DIAGNOSE_S:
            self._recorder.diagnose(self._handle.observe(t_s - self._diagnosed_s))
            self._diagnosed_s = t_s

    def _watch_usage(self) -> None:
        """In a thread of its own: looking at all processes would hold up the tick."""
        try:
            meter = UsageMeter()
            while True:
                ended, used = not self._handle.active, meter.look()
                self.record.cpu_s = used.cpu_s
                self.record.memory_bytes = max(self.record.memory_bytes or 0, used.resident_bytes)
                if ended:
                    return
                time.sleep(USAGE_S)
        except OSError as error:
            log.warning("CPU and memory are not measured: %s", error)

    def _injected(self, start_s: float) -> tuple[tuple[float, float], ...]:
        """The spikes of replays, in seconds of this record: a run may go on in the middle of one."""
        found = []
        for source in self._handle.graph.sources:
            state = self._handle.status.sources.get(source.name)
            if isinstance(source.source, Replay) and state is not None:
                begun_s = state["origin_s"] - start_s
                found += [(begun_s + from_s, begun_s + to_s) for from_s, to_s in source.source.arrivals.spikes]
        return tuple(sorted(found))

    def on_decision(self, entry: JournalEntry) -> None:
        ended_s = entry.observation.ended_s
        self._recorder.add_decision(ended_s - (self._start_s or ended_s), entry)


def events_of(audit: Audit) -> Events:
    dropped, dead_letters = audit.dropped - audit.dead_letters, audit.dead_letters
    return Events(audit.entered, audit.finished, dropped, audit.queued, audit.duplicates, audit.created, dead_letters)
