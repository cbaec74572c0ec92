"""A run that was recorded: its journal enters; what it was like, so that others can play it again, leaves.

Only a journal is needed, neither the application nor Spark. It does not say how tuples are shared out, except that keys do it,
nor how often each key comes, nor what state keys have: in a simulation tuples are shared out evenly, keys come equally
often, and nothing is remembered. `--cluster FILE.yaml` can say how skewed the keys are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from elastream.control import Guards, JournalEntry, OperatorObservation, read_run
from elastream.errors import SettingError
from elastream.report.latency import Latencies
from elastream.simulator.application import Application
from elastream.simulator.model import Node
from elastream.simulator.profile import OperatorTimes
from elastream.topology import Edge, Graph, Kind, Operator, OperatorName, Replicas, groupings
from elastream.workload.replay import Numbers, Replay
from elastream_lab.bench.tournament.recorded_time import (
    Span,
    arrivals_of,
    interval_s,
    latencies_of,
    mean_latency_s,
    spans_of,
)

LEAST_LOOKS = 5
"""Of fewer looks nobody should judge policies."""
SHORTEST_S = 1e-6
"""Of an operator that served nothing, and of a source that takes no time."""
KEY = "key"


@dataclass(frozen=True)
class AsItRan:
    """Measured, not simulated. What a journal does not tell is not here."""

    policy: str
    replica_seconds: float
    mean_s: float | None
    latencies: Latencies | None
    """None when there is only the mean in the journal."""
    finished: int
    lost: int
    queued: int
    """At the end."""
    rescales: int
    moments: int
    """Decisions that changed the replicas of some operator."""


@dataclass(frozen=True)
class RecordedRun:
    """All that a policy needs to play a run again, and how it was."""

    name: str
    """Its base."""
    application: Application
    td_s: float
    """The interval for policies that have no own pace."""
    guards: Guards
    seconds: float
    """Until all was served, or as long as there is a journal."""
    tuples: int
    as_it_ran: AsItRan


def recorded_run(base: str) -> RecordedRun:
    """From the base directory of a run that had a policy."""
    where = f"run {base}"
    entries = _served(_newest(read_run(base, where)))
    spans = spans_of(entries, where)
    if len(spans) < LEAST_LOOKS:
        raise SettingError(
            f"{where}: expected a journal of {LEAST_LOOKS} intervals or more, got {len(spans)}; let it run for longer"
        )
    graph = _graph(base, entries, spans)
    tuples = sum(source.source.arrivals.total for source in graph.sources if isinstance(source.source, Replay))
    if not tuples:
        raise SettingError(f"{where}: nothing came in, so there is nothing to play")
    # In virtual time there are no hours of the day, and others shall be allowed what this one was only to advise.
    guards = replace(entries[-1].guards, windows=(), dry_run=False)
    application = Application(base, graph, _times(entries), nodes=_nodes(entries))
    return RecordedRun(
        base, application, interval_s(entries), guards, spans[-1].to_s, tuples, _as_it_ran(entries, spans)
    )


def _newest(entries: list[JournalEntry]) -> list[JournalEntry]:
    """The last stretch in which one policy decided on one graph: a base may have been run several times."""
    last = entries[-1]
    graph = _names(last)
    for place in range(len(entries) - 1, -1, -1):
        if entries[place].policy != last.policy or _names(entries[place]) != graph:
            return entries[place + 1 :]
    return entries


def _names(entry: JournalEntry) -> list[tuple[str, str]]:
    return [(name, operator.role) for name, operator in entry.observation.operators.items()]


def _served(entries: list[JournalEntry]) -> list[JournalEntry]:
    """Without the time after all was served: a simulation ends there, too."""
    end = len(entries)
    while end > 1 and not _came(entries[end - 1]) and not _waiting(entries[end - 2]):
        end -= 1
    return entries[:end]


def _came(entry: JournalEntry) -> int:
    return sum(sum(look.read) for look in entry.all_looks) + sum(entry.all_looks[-1].unread)


def _waiting(entry: JournalEntry) -> int:
    return entry.observation.queued + sum(entry.all_looks[-1].unread)


def _graph(base: str, entries: Sequence[JournalEntry], spans: Sequence[Span]) -> Graph:
    """The operators that have lanes, with the sizes of the first interval. What is chained to one is part of it."""
    seen = [o for o in entries[0].observation.operators.values() if o.role != "chained"]
    sources = [operator.operator for operator in seen if operator.role == "source"]
    operators, edges = [], []
    for operator in seen:
        replay = None
        if operator.role == "source":
            replay = Replay(arrivals_of(spans, sources.index(operator.operator)), pa.schema([]), _nothing)
        operators.append(_operator(operator, replay))
        grouping = groupings.fields(KEY) if operator.by_key else groupings.shuffle
        edges += [Edge(OperatorName(p), OperatorName(operator.operator), grouping) for p in operator.received_from]
    return Graph(base, tuple(operators), tuple(edges))


def _operator(seen: OperatorObservation, replay: Replay | None) -> Operator:
    """A simulation calls no functions and looks at no columns."""
    kind = Kind.SOURCE if replay else Kind.OUTPUT if seen.role == "output" else Kind.BATCH
    sizes = Replicas(seen.least, seen.most, min(max(seen.replicas, seen.least), seen.most))
    return Operator(OperatorName(seen.operator), kind, None, pa.schema([]), sizes, waits=seen.waits, source=replay)


def _nothing(numbers: Numbers) -> pa.RecordBatch:
    raise NotImplementedError("the tuples of a recorded run are not known, only when they came")


def _times(entries: Sequence[JournalEntry]) -> dict[str, OperatorTimes]:
    """Mean service times and what is passed on to whom, over all intervals."""
    processed: Counter[str] = Counter()
    busy_s: defaultdict[str, float] = defaultdict(float)
    cpu_s: defaultdict[str, float] = defaultdict(float)
    passed: defaultdict[str, Counter[str]] = defaultdict(Counter)
    fastest_s: dict[str, float] = {}
    for entry in entries:
        for name, seen in entry.observation.operators.items():
            processed[name] += seen.processed
            busy_s[name] += seen.busy_seconds
            cpu_s[name] += seen.busy_seconds * seen.cpu_share
            if seen.processed:
                fastest_s[name] = min(fastest_s.get(name, float("inf")), seen.busy_seconds / seen.processed)
            for before, count in seen.received_from.items():
                passed[before][name] += count
    times = {}
    for name, role in _names(entries[-1]):
        # A source reads many at once when many come: only its fastest interval says what a tuple takes.
        measured_s = fastest_s.get(name, 0.0) if role == "source" else busy_s[name] / max(1, processed[name])
        shares = {to: count / processed[name] if processed[name] else 1.0 for to, count in passed[name].items()}
        cpu = min(1.0, cpu_s[name] / busy_s[name]) if busy_s[name] else 0.0
        times[name] = OperatorTimes(max(measured_s, SHORTEST_S), cpu, 0.0, shares)
    return times


def _nodes(entries: Iterable[JournalEntry]) -> tuple[Node, ...]:
    """The machines when there were most hosts, with a core for each: a host is a process of Python and uses one at a time."""
    hosts = max((entry.observation.hosts for entry in entries), key=len)
    cores: defaultdict[str, float] = defaultdict(float)
    for host in hosts:
        cores[host.machine] += host.cores
    return tuple(map(Node, cores.values()))


def _as_it_ran(entries: Sequence[JournalEntry], spans: Sequence[Span]) -> AsItRan:
    changes = [sum(decision.rescales for decision in entry.decisions) for entry in entries]
    return AsItRan(
        entries[-1].policy,
        sum(span.replicas * span.seconds for span in spans),
        mean_latency_s(spans),
        latencies_of(spans),
        finished=sum(span.look.finished for span in spans),
        lost=sum(span.look.dropped for span in spans),
        queued=_waiting(entries[-1]),
        rescales=sum(changes),
        moments=sum(bool(changed) for changed in changes),
    )
