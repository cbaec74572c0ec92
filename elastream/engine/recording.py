"""From ticks to the record that a report is made of."""

import math
from collections import Counter

from elastream.control import JournalEntry, Observation, OperatorObservation
from elastream.engine.handle import Handle
from elastream.engine.measure import Tick
from elastream.lanes import Audit
from elastream.scoring import Events, Record, Rescale, Sample
from elastream.scoring.balance import load_ratio, load_sample
from elastream.topology import Kind


class Recorder:
    """Listens to a handle and writes down every tick."""

    def __init__(self, handle: Handle) -> None:
        graph = handle.graph
        self._operators = [operator.name for operator in graph.operators]
        self.record = Record(graph.name, tuple(source.name for source in graph.sources))
        self.record.pools = {o.name: o.replicas.most for o in graph.served if o.kind is not Kind.OUTPUT}
        self.record.policy, self.record.interval_s = handle.policy, handle.td_s
        self._q_size = handle.settings.q_size
        self.reasons: dict[str, str] = {}
        """Why the next change of an operator's replicas happens; whoever asks for it says so here."""
        self._start_s: float | None = None
        self._replicas: dict[str, int] = {}
        self._applying = 0
        self._served: Counter[str] = Counter()
        handle.subscribe(self.add)
        handle.on_decision(self.decided)

    def add(self, tick: Tick) -> None:
        if self._start_s is None:
            # The first tick starts the workers; the run begins when it is over.
            self._start_s, self._replicas = tick.ended_s, dict(tick.replicas)
            return
        t_s, seconds = tick.ended_s - self._start_s, tick.ended_s - tick.started_s
        record = self.record
        record.tick_ms.append(seconds * 1e3)
        record.latencies.merge(tick.settled.latencies)
        record.latency_line.add(t_s, tick.settled.latencies)
        changed = {name: size for name, size in tick.replicas.items() if size != self._replicas.get(name, size)}
        for name, size in changed.items():
            record.rescales.append(Rescale(t_s, name, self._replicas[name], size, self.reasons.pop(name, "asked for")))
        if self._applying:
            self._applying -= 1
            record.rescale_ticks_ms[-1] = max(record.rescale_ticks_ms[-1], seconds * 1e3)
        if changed:
            # This tick committed the change; the next one routes by it, and the one after that serves the new lanes.
            record.rescale_ticks_ms.append(seconds * 1e3)
            self._applying = 2
        self._replicas = dict(tick.replicas)
        for name in self._operators:
            counts = tick.settled.counts.get(name, {})
            is_source = name in record.sources
            record.series.add(
                name,
                Sample(
                    t_s,
                    seconds,
                    int(counts.get("processed" if is_source else "received", 0)),
                    int(counts.get("processed", 0)),
                    int(counts.get("failed", 0) + counts.get("late", 0) + counts.get("overflowed", 0)),
                    tick.queued.get(name, 0),
                    tick.replicas.get(name, 1),
                    float(counts.get("busy_s", 0.0)),
                    int(counts.get("entered", 0)),
                    int(counts.get("finished", 0)),
                ),
            )

    def decided(self, entry: JournalEntry) -> None:
        """Keep the words: those of a change go with it when it takes effect. And how loaded the replicas are."""
        observation = entry.observation
        t_s = observation.ended_s - (self._start_s or observation.ended_s)
        ratios = load_ratios(observation, self._q_size, self.record.interval_s)
        if ratios:
            self.record.loads.append(load_sample(t_s, ratios))
        for name in self.record.pools:
            self._note_usable(observation.operators[name])
        if entry.error:
            self.record.remarks.append((t_s, "error", entry.error))
        for decision in entry.decisions:
            if decision.rescales:
                self.reasons[decision.operator] = decision.words
            said = f"{decision.operator}: {decision.before} -> {decision.after}  {decision.words}"
            if decision.asked != decision.before:
                self.record.remarks.append((t_s, "rescale" if decision.rescales else "veto", said))

    def _note_usable(self, operator: OperatorObservation) -> None:
        """The mean over all tuples: what a tick could be used for when there was much to do counts for much."""
        name, before = operator.operator, self._served[operator.operator]
        self._served[name] += operator.processed
        if self._served[name]:
            share = self.record.usable.get(name, 0.0) * before + operator.usable * operator.processed
            self.record.usable[name] = share / self._served[name]


def load_ratios(observation: Observation, q_size: int | None, interval_s: float) -> list[float]:
    """What waits in front of each active replica, against its queue's bound.

    A queue without one is full when the replica cannot serve it in the next interval.
    """
    ratios = []
    for operator in observation.operators.values():
        if operator.role != "operator":
            continue
        serves = interval_s * operator.usable / operator.service_seconds if operator.service_seconds else math.inf
        ratios += [load_ratio(lane.queued, q_size or serves) for lane in operator.lanes if lane.active]
    return ratios


def events_of(audit: Audit) -> Events:
    return Events(audit.entered, audit.finished, audit.dropped, audit.queued, audit.duplicates)
