"""The simulated plant: the same contract as the engine's, over arrays in virtual time."""

import numpy as np

from elastream import rules
from elastream.control import (
    Decision,
    HostObservation,
    LevelDecision,
    Move,
    Observation,
    OperatorObservation,
    Redirected,
    ReplicaObservation,
)
from elastream.control.containers import set_levels
from elastream.report.latency import Latencies
from elastream.simulator.fidelity import Fidelity
from elastream.simulator.fleet import SimulatedFleet, machine_cpu
from elastream.simulator.model import Model
from elastream.simulator.state import (
    FOUND_LB,
    FOUND_MOST,
    LENGTH,
    LONGEST_WAIT_S,
    NOW,
    TICKS,
    TIMES,
    WAIT_SUM_S,
    Floats,
    Ints,
    Moving,
)


class Counted:
    """A copy of all counters, to take differences from."""

    def __init__(self, moving: Moving) -> None:
        self.received = moving.received.copy()
        self.processed = moving.processed.copy()
        self.dropped = moving.dropped.copy()
        self.busy_s = moving.busy_s.copy()
        self.over_edge = moving.over_edge.copy()
        self.read = moving.read.copy()
        self.entered = moving.entered.copy()
        self.finished = moving.finished.copy()
        self.waits = moving.waits.copy()
        self.clock = moving.clock.copy()


class SimulatedPlant:
    """Observes and changes one simulation."""

    def __init__(self, model: Model, fidelity: Fidelity, *, td_s: float) -> None:
        self.model = model
        self.fidelity = fidelity
        self.moving = fidelity.moving
        self.fleet = SimulatedFleet(fidelity)
        self._td_s = td_s
        self._before = Counted(self.moving)
        self._place: dict[str, int] = {operator.name: number for number, operator in enumerate(model.operators)}
        self._times = self.moving.redirect[:, TIMES].copy()
        self._cpu_share = np.repeat(model.fixed.cpu_share, np.diff(model.fixed.first))
        """Per lane."""
        self.moving.redirect[:, LENGTH] = [self._length(float(its)) for its in self.moving.expected_s]

    def clock(self) -> float:
        return float(self.moving.clock[NOW])

    def observe(self) -> Observation:
        before, now = self._before, Counted(self.moving)
        self._before = now
        seconds = float(now.clock[NOW] - before.clock[NOW])
        operators: dict[str, OperatorObservation] = {
            source.name: self._source(n, before, now) for n, source in enumerate(self.model.sources)
        }
        passed = now.over_edge - before.over_edge
        from_of: dict[str, dict[str, int]] = {}
        emitted: dict[str, int] = {}
        for (head, target), count in zip(self.model.edges, passed.tolist(), strict=True):
            from_of.setdefault(target, {})[head] = from_of.get(target, {}).get(head, 0) + count
            emitted[head] = emitted.get(head, 0) + count
        lanes = _Lanes(self.moving, before, now, self.fidelity.machines.homes())
        processed = []
        for place, operator in enumerate(self.model.operators):
            first, end = int(self.model.fixed.first[place]), int(self.model.fixed.first[place + 1])
            name, active = operator.name, int(self.moving.active[place])
            served = sum(lanes.processed[first:end])
            busy_s = sum(lanes.busy_s[first:end])
            service_s = busy_s / served if served else float(self.moving.expected_s[place])
            processed.append(served)
            operators[name] = OperatorObservation(
                operator=name,
                replicas=active,
                received=sum(lanes.received[first:end]),
                received_from=from_of.get(name, {}),
                processed=served,
                emitted=emitted.get(name, 0),
                queued=sum(lanes.queued[first:end]),
                dropped=sum(lanes.dropped[first:end]),
                busy_seconds=busy_s,
                service_seconds=service_s,
                lanes=tuple(
                    lanes.replica(lane, lane - first, lane - first < active)
                    for lane in range(first, end)
                    if lane - first < active or lanes.moved(lane)
                ),
                least=operator.replicas.least,
                most=operator.replicas.most,
                waits=bool(self.model.fixed.cpu_share[place] < rules.COMPUTING_SHARE),
                cpu_share=float(self.model.fixed.cpu_share[place]),
                length=self._length(service_s),
                by_key=name in self.model.graph.reached_by_keys,
            )
            self._learn(place, first, end, service_s, seconds, lanes)
        self.fidelity.count_copies(seconds, processed)
        waits = latencies_of(now.waits - before.waits, now.clock - before.clock, float(now.clock[LONGEST_WAIT_S]))
        return Observation(
            tick=int(now.clock[TICKS]),
            ended_s=float(now.clock[NOW]),
            seconds=seconds,
            ticks=int(now.clock[TICKS] - before.clock[TICKS]),
            slots=self.fidelity.slots,
            entered=int((now.entered - before.entered).sum()),
            finished=int((now.finished - before.finished).sum()),
            dropped=int((now.dropped - before.dropped).sum()),
            queued=int(self.moving.queued.sum()),
            latency_mean_s=waits.mean_s,
            latency_p95_s=waits.percentile_s(0.95),
            operators=operators,
            state_moves=self.fidelity.groups.told(),
            hosts=self._hosts(lanes, seconds),
            redirections=(*self.fidelity.redirection.told(), *self._redirected()),
            fleet=self.fleet.look(),
            latencies=dict(waits.buckets),
        )

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        for decision in decisions:
            place = self._place[decision.operator]
            first = int(self.model.fixed.first[place])
            for lane in range(first + decision.before, first + decision.after):
                self.fidelity.start(lane)
            for lane in range(first + decision.after, first + decision.before):
                self.fidelity.containers.free(lane)
            self.moving.asked[place] = decision.after
            self.fidelity.groups.resize(place)
        self.model.weigh(self.moving)
        return 0.0

    def pause(self, seconds: float) -> float:
        self.fidelity.pause(seconds)
        self._before = Counted(self.moving)
        # The clock shows the end of the pause.
        return 0.0

    def discard(self) -> None:
        self.fidelity.drop(np.ones(len(self.moving.queued), np.bool_))

    def place(self, moves: tuple[Move, ...]) -> None:
        for move in moves:
            self.fidelity.machines.place(self._place[move.operator], move.lane, move.after)

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        set_levels(self.fleet, decisions)

    def _length(self, service_s: float) -> float:
        return rules.full_queue(self.fidelity.limits.q_size or None, service_s)

    def _hosts(self, lanes: "_Lanes", seconds: float) -> tuple[HostObservation, ...]:
        """The machines that are there. What a lane used counts for the machine on which it lives now."""
        cores = self.model.fixed.node_cores.tolist()
        cpu_s = np.asarray(lanes.busy_s) * self._cpu_share
        busy_s = np.bincount(self.moving.node, cpu_s, len(cores)).tolist()
        found = []
        for node in np.flatnonzero(self.moving.node_up).tolist():
            busy = busy_s[node] / seconds if seconds else 0.0
            cpu, memory = machine_cpu(busy, cores[node]), self.fidelity.containers.memory(node)
            found.append(
                HostObservation(
                    node, f"machine {node}", cores[node], busy, machine_cpu=cpu, machine_memory=min(1.0, memory)
                )
            )
        return tuple(found)

    def _redirected(self) -> list[Redirected]:
        """Operators whose tuples were begun to be redirected in this interval, without regard to keys."""
        redirect, found = self.moving.redirect, []
        for place in np.flatnonzero(redirect[:, TIMES] > self._times).tolist():
            lb, most = float(redirect[place, FOUND_LB]), float(redirect[place, FOUND_MOST])
            why = rules.why_out_of_range(lb, most)
            said = f"{why}: tuples go to replicas with more room"
            found.append(Redirected(self.model.operators[place].name, self.clock(), lb, said))
        self._times = redirect[:, TIMES].copy()
        return found

    def _source(self, place: int, before: Counted, now: Counted) -> OperatorObservation:
        name = self.model.sources[place].name
        read = int(now.read[place] - before.read[place])
        # What a spout of Storm holds back is in none of its metrics.
        waiting = 0 if self.fidelity.limits.in_flight else self.fidelity.unread(place)
        return OperatorObservation(name, 1, 0, {}, read, read, waiting, 0, 0.0, 0.0, role="source")

    def _learn(self, place: int, first: int, end: int, service_s: float, seconds: float, lanes: "_Lanes") -> None:
        """Tell routing by load how busy every lane was, and how much a tuple adds."""
        if not seconds:
            return
        self.moving.redirect[place, LENGTH] = self._length(service_s)
        self.fidelity.costs[place] = service_s / self._td_s
        shares = np.asarray(lanes.processed[first:end]) * service_s / seconds
        self.moving.busy_before[first:end] = np.minimum(1.0, shares)


class _Lanes:
    """The lanes' counts over an interval, as plain numbers."""

    def __init__(self, moving: Moving, before: Counted, now: Counted, homes: list[int]) -> None:
        self._homes = homes
        self.queued: list[int] = moving.queued.tolist()
        self.received: list[int] = (now.received - before.received).tolist()
        self.processed: list[int] = (now.processed - before.processed).tolist()
        self.dropped: list[int] = (now.dropped - before.dropped).tolist()
        self.busy_s: list[float] = (now.busy_s - before.busy_s).tolist()

    def moved(self, lane: int) -> bool:
        """Whether anything happened in a lane, or something waits in it."""
        return bool(self.queued[lane] or self.received[lane] or self.processed[lane] or self.dropped[lane])

    def replica(self, lane: int, number: int, active: bool) -> ReplicaObservation:
        return ReplicaObservation(
            number,
            active,
            self.received[lane],
            self.processed[lane],
            self.queued[lane],
            self.busy_s[lane],
            dropped=self.dropped[lane],
            host=self._homes[lane],
        )


def latencies_of(waits: Floats, clock: Floats, longest_s: float) -> Latencies:
    """Counts by bucket as the report knows them. `clock` is of the same stretch of time."""
    made = Latencies()
    counts: Ints = np.rint(waits).astype(np.int64)
    made.buckets.update({int(bucket): int(counts[bucket]) for bucket in np.flatnonzero(counts)})
    total = waits.sum()
    made.sum_s = float(clock[WAIT_SUM_S]) * (made.count / total) if total else 0.0
    made.max_s = longest_s
    return made
