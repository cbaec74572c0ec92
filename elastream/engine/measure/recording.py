"""From ticks to the record that a report is made of."""

import logging
import threading
import time

from elastream.control import JournalEntry
from elastream.control.fleet_sample import fleet_sample
from elastream.control.health import health_sample
from elastream.control.load import load_sample
from elastream.control.remarks import other_remarks
from elastream.engine.handle import RunHandle, RunListener
from elastream.engine.measure.usage import UsageMeter
from elastream.engine.tick.ports import Tick
from elastream.lanes import Audit, OperatorCounts
from elastream.report import Events, Record, Rescale, Sample
from elastream.report.latency import Latencies
from elastream.topology import Graph, Kind
from elastream.workload.replay import Replay

log = logging.getLogger("elastream.measure")

USAGE_S = 0.5
"""Between two looks at CPU and memory."""

SAMPLE_S = 0.1
"""Ticks are added up to samples of about this length: there are hundreds a second."""

SHORTEST_S = 1e-3
"""Of a sample: a run may end with its first tick."""


class Recorder(RunListener):
    """Listens to a run from its first tick on and writes down what happens: `run(graph, listeners=[recorder])`."""

    def __init__(self, graph: Graph) -> None:
        self._operators = [operator.name for operator in graph.operators]
        self.record = Record(graph.name, tuple(source.name for source in graph.sources))
        self.record.pools = {o.name: o.replicas.most for o in graph.served if o.kind is not Kind.OUTPUT}
        self.reasons: dict[str, str] = {}
        """Why the next change of an operator's replicas happens; whoever asks for it says so here."""
        self._start_s: float | None = None
        self._began_s = 0.0
        self._replicas: dict[str, int] = {}
        self._counts: dict[str, OperatorCounts] = {}
        self._latencies = Latencies()
        self._applying = 0
        self._started: RunHandle | None = None
        self._last: Tick | None = None
        self._moves = 0

    def on_start(self, handle: RunHandle) -> None:
        self._started = handle
        self.record.policy, self.record.interval_s = handle.policy, handle.td_s
        self.record.base = str(handle.store)
        threading.Thread(target=self._watch_usage, name="elastream-usage", daemon=True).start()

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
        record, t_s, seconds = self.record, tick.ended_s - self._start_s, tick.ended_s - tick.started_s
        record.tick_ms.append(seconds * 1e3)
        changed = {name: size for name, size in tick.replicas.items() if size != self._replicas.get(name, size)}
        for name, size in changed.items():
            record.rescales.append(Rescale(t_s, name, self._replicas[name], size, self.reasons.pop(name, "asked for")))
        if self._applying:
            self._applying -= 1
            record.rescale_ticks_ms[-1] = max(record.rescale_ticks_ms[-1], seconds * 1e3)
        if changed:
            # This tick committed the change; works of the next ones route by it and serve the new lanes.
            record.rescale_ticks_ms.append(seconds * 1e3)
            self._applying = 2
            self._replicas = dict(tick.replicas)
        if changed or tick.ended_s - self._began_s >= SAMPLE_S:
            self._end_sample(tick, t_s)

    def _end_sample(self, tick: Tick, t_s: float) -> None:
        record, seconds = self.record, max(tick.ended_s - self._began_s, SHORTEST_S)
        record.latencies.merge(self._latencies)
        record.latency_line.add(t_s, self._latencies)
        unread = self._handle.unread(tick.ended_s)
        # A source that full lanes hold up waits for replicas; another one is about to be read.
        held = self._handle.settings.q_size and self._handle.settings.on_full == "wait"
        for name in self._operators:
            counts = self._counts.get(name) or OperatorCounts()
            is_source = name in record.sources
            record.late[name] += counts.late
            record.series.add(
                name,
                Sample(
                    t_s,
                    seconds,
                    counts.processed if is_source else counts.received,
                    counts.processed,
                    counts.late + counts.overflowed,
                    unread.get(name, 0) if is_source else tick.queued.get(name, 0),
                    tick.replicas.get(name, 1),
                    counts.busy_s,
                    counts.entered,
                    counts.finished,
                    (unread.get(name, 0) if held else 0) if is_source else tick.waiting.get(name, 0),
                    counts.late,
                ),
            )
        for moved in self._handle.state_moves:
            if moved.number > self._moves:
                record.state_moves.append({"t_s": t_s, **vars(moved)})
                self._moves = moved.number
        self._began_s, self._counts, self._latencies = tick.ended_s, {}, Latencies()

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
            state = self._handle.ledger.sources.get(source.name)
            if isinstance(source.source, Replay) and state is not None:
                begun_s = state["origin_s"] - start_s
                found += [(begun_s + from_s, begun_s + to_s) for from_s, to_s in source.source.arrivals.spikes]
        return tuple(sorted(found))

    def on_decision(self, entry: JournalEntry) -> None:
        """Keep the words: those of a change go with it when it takes effect. And how loaded the replicas are."""
        observation = entry.observation
        t_s = observation.ended_s - (self._start_s or observation.ended_s)
        sample = load_sample(t_s, observation)
        if sample is not None:
            self.record.loads.append(sample)
        fleet = fleet_sample(t_s, entry)
        if fleet is not None:
            self.record.fleet.append(fleet)
        self.record.healths.append(health_sample(t_s, observation))
        if entry.error:
            self.record.remarks.append((t_s, "error", entry.error))
        if entry.warning:
            self.record.remarks.append((t_s, "warning", entry.warning))
            self.record.warnings.append(entry.warning)
        for decision in entry.decisions:
            if decision.rescales:
                self.reasons[decision.operator] = decision.words
            said = f"{decision.operator}: {decision.before} -> {decision.after}  {decision.words}"
            if decision.asked != decision.before:
                self.record.remarks.append((t_s, "rescale" if decision.rescales else "veto", said))
        if entry.proposal is not None and entry.proposal.search is not None:
            self.record.searches.append({"t_s": t_s, **vars(entry.proposal.search)})
        for kind, said in other_remarks(entry):
            self.record.remarks.append((t_s, kind, said))


def events_of(audit: Audit) -> Events:
    dropped, dead_letters = audit.dropped - audit.dead_letters, audit.dead_letters
    return Events(audit.entered, audit.finished, dropped, audit.queued, audit.duplicates, audit.created, dead_letters)
