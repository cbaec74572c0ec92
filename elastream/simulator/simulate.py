"""A run in virtual time: the same control loop, the same record, no Spark."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from elastream import rules
from elastream.control import ControlLoop, Guards, JournalEntry, Policy, interval_of
from elastream.report import Events, Record, Rescale, Sample
from elastream.report.recorder import RunRecorder
from elastream.simulator.cluster import Cluster
from elastream.simulator.containers import Containers
from elastream.simulator.fidelity import Fidelity, System
from elastream.simulator.memory import Memory
from elastream.simulator.model import Model
from elastream.simulator.plant import Counted, SimulatedPlant, latencies_of
from elastream.simulator.state import LONGEST_WAIT_S, NOW, TICKS, Limits

MOST_SAMPLES, LEAST_SAMPLES = 400_000, 200
"""Of a run, all operators together, however long it is; and of each operator at least."""
MOST_EACH = 4000
MOST_TICKS = 12
"""Turns whose lengths are written down with a sample."""
FINEST_S = 0.25
NO_HURRY_S = float("inf")


@dataclass(frozen=True)
class Simulated:
    """How it went."""

    record: Record
    events: Events
    ticks: int
    """Turns of the driver, or steps of a system without one."""


def simulate(
    model: Model,
    system: System,
    policy: Policy,
    *,
    td_s: float | None = None,
    seed: int,
    seconds: float,
    guards: Guards | None = None,
    limits: Limits | None = None,
    cluster: Cluster | None = None,
    fidelity: Callable[..., Fidelity] = Fidelity,
    on_progress: Callable[[float], None] = lambda now_s: None,
    on_entry: Callable[[JournalEntry], None] = lambda entry: None,
) -> Simulated:
    """Until everything is served, or for so many seconds of virtual time. The same seed gives the same run."""
    cluster, guards, interval_s = cluster or Cluster(), guards or Guards(), interval_of(policy, td_s)
    sizes = first_sizes(model, policy.start)
    flow = fidelity(
        model,
        system,
        limits or Limits(0, False, 0.0),
        model.begin(sizes),
        Containers(cluster.startup, model.nodes),
        seed=seed,
        failures=cluster.failures,
        state=cluster.state,
    )
    memory, plant = Memory(flow, cluster.tuple_kb), SimulatedPlant(model, flow, td_s=interval_s)
    loop = ControlLoop(plant, policy, td_s=td_s, guards=guards, journal=None, clock=plant.clock, patience_s=NO_HURRY_S)
    writer = Writer(plant, policy.name, interval_s)

    def decided(entry: JournalEntry) -> None:
        writer.decided(entry)
        on_entry(entry)

    loop.on_decision.append(decided)
    loop.step()
    each = min(MOST_EACH, max(LEAST_SAMPLES, MOST_SAMPLES // len(model.operators)))
    sample_s = max(FINEST_S, seconds / each)
    next_sample_s, next_look_s = sample_s, interval_s
    while not flow.over and plant.clock() < seconds:
        flow.advance(min(next_sample_s, next_look_s, seconds))
        memory.look()
        if plant.clock() >= next_sample_s or flow.over or plant.clock() >= seconds:
            writer.sample()
            next_sample_s = plant.clock() + sample_s
        if plant.clock() >= next_look_s:
            loop.step()
            next_look_s = plant.clock() + interval_s
            on_progress(plant.clock())
    writer.record.crashes = [(crash.t_s, f"machine {crash.machine}: out of memory") for crash in memory.crashes]
    return Simulated(writer.record, writer.end(), int(flow.moving.clock[TICKS]))


def first_sizes(model: Model, start: int | None) -> dict[str, int]:
    """Replicas of every operator at the start, by the same rule as in the engine."""
    return {
        operator.name: rules.first_size(operator.replicas.least, operator.replicas.most, operator.replicas.start, start)
        for operator in model.operators
    }


class Writer:
    """Writes the record that a report is made of."""

    def __init__(self, plant: SimulatedPlant, policy: str, td_s: float) -> None:
        model = plant.model
        self._plant = plant
        self._before = Counted(plant.moving)
        self._ticks_seen = 0
        pools: dict[str, int] = {operator.name: operator.replicas.most for operator in model.operators}
        self._recorder = RunRecorder(model.graph.name, tuple(source.name for source in model.sources), pools)
        self.record = self._recorder.record
        self.record.policy, self.record.interval_s = policy, td_s
        self.record.spikes = model.spikes

    def sample(self) -> None:
        """One row for each source and operator."""
        plant, model, before = self._plant, self._plant.model, self._before
        now = Counted(plant.moving)
        self._before = now
        t_s = float(now.clock[NOW])
        seconds = t_s - float(before.clock[NOW])
        samples: dict[str, Sample] = {}
        entered, finished = (now.entered - before.entered).tolist(), (now.finished - before.finished).tolist()
        for place, source in enumerate(model.sources):
            read, unread = int(now.read[place] - before.read[place]), plant.fidelity.unread(place)
            # A source that is held up by full queues waits for replicas; another one is about to be read.
            limits = plant.fidelity.limits
            held = unread if limits.in_flight or (limits.q_size and not limits.drops) else 0
            samples[source.name] = Sample(
                t_s, seconds, read, read, 0, unread, 1, 0.0, entered[place], finished[place], held
            )
        first = model.fixed.first[:-1]
        received, processed, dropped = (
            np.add.reduceat(after - then, first).tolist()
            for after, then in (
                (now.received, before.received),
                (now.processed, before.processed),
                (now.dropped, before.dropped),
            )
        )
        queued = np.add.reduceat(plant.moving.queued, first).tolist()
        waiting = np.add.reduceat(plant.fidelity.behind_busy(), first).tolist()
        busy_s = np.add.reduceat(now.busy_s - before.busy_s, first).tolist()
        for place, operator in enumerate(model.operators):
            head = len(model.sources) + place
            samples[operator.name] = Sample(
                t_s,
                seconds,
                received[place],
                processed[place],
                dropped[place],
                queued[place],
                int(plant.moving.active[place]),
                busy_s[place],
                entered[head],
                finished[head],
                waiting[place],
            )
        waits, clock = now.waits - before.waits, now.clock - before.clock
        self._recorder.add_samples(t_s, samples, latencies_of(waits, clock, float(now.clock[LONGEST_WAIT_S])))
        self._note_ticks(int(now.clock[TICKS]))

    def decided(self, entry: JournalEntry) -> None:
        t_s = entry.observation.ended_s
        rescales = [Rescale(t_s, d.operator, d.before, d.after, d.words) for d in entry.decisions if d.rescales]
        self._recorder.add_rescales(int(self._plant.moving.clock[TICKS]), rescales)
        self._recorder.add_state_moves(t_s, entry.observation.state_moves)
        self._recorder.add_decision(t_s, entry)

    def end(self) -> Events:
        """The run is over; where its tuples are."""
        self._recorder.end()
        moving = self._plant.moving
        held, refused = self._plant.fidelity.held_back, int(moving.refused.sum())
        dropped, queued = int(moving.dropped.sum()) + refused, int(moving.queued.sum()) + held
        entered = int(moving.entered.sum()) + held + refused
        return Events(entered, int(moving.finished.sum()), dropped, queued, 0, self._created())

    def _created(self) -> int:
        """Tuples that entered and that no source brought in."""
        record = self.record
        entered = sum(sample.entered for samples in record.series.operators.values() for sample in samples)
        read = sum(sample.processed for name in record.sources for sample in record.series.operators.get(name, ()))
        return max(0, entered - read)

    def _note_ticks(self, ticks: int) -> None:
        """The lengths of the newest turns since the last sample."""
        kept = self._plant.moving.ticks_s
        first = max(self._ticks_seen, ticks - MOST_TICKS)
        self._ticks_seen = ticks
        self._recorder.add_ticks(first, (kept[np.arange(first, ticks) % len(kept)] * 1e3).tolist())
