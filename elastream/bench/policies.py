"""Policies beside one another: the same application on the same workload, once for each of them, in one session of Spark."""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elastream.bench.tables import number, table
from elastream.control import Guards
from elastream.engine import Handle, Settings, run, tick_session
from elastream.engine.recording import Recorder, events_of
from elastream.engine.sources import Replay
from elastream.scoring import Record, write_report
from elastream.topology import Graph

DRAIN_S = 15.0
"""How long a run may go on after its last tuple was due; one that is further behind is stopped with what still waits."""

Watch = Callable[[Handle, Record, Callable[[float], bool]], None]
"""Shows a run until it is over, or until the function of the seconds says no more."""


@dataclass(frozen=True)
class Trial:
    """One run."""

    label: str
    policy: str
    graph: Graph


@dataclass(frozen=True)
class Outcome:
    """How a trial went."""

    label: str
    report: dict[str, Any]
    record: Record


def compare(
    trials: Sequence[Trial],
    folder: Path,
    watch: Watch,
    *,
    td_s: float,
    guards: Guards | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None],
) -> list[Outcome]:
    """Run all trials, write each one's report and, for all together, policies.md, .json and .png."""
    spark = tick_session(None, max(_lanes(trial.graph) for trial in trials))
    outcomes = []
    for position, trial in enumerate(trials, 1):
        say(f"{position} of {len(trials)}: {trial.label}, {_seconds(trial.graph):.0f} s of input")
        base = tempfile.mkdtemp(prefix="elastream-")
        try:
            outcomes.append(_run(trial, base, folder, watch, spark, td_s, guards, settings))
        finally:
            shutil.rmtree(base, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    document = {outcome.label: outcome.report for outcome in outcomes}
    (folder / "policies.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    (folder / "policies.md").write_text(outcome_table(outcomes) + "\n", encoding="utf-8")
    from elastream.bench.policies_plot import draw_policies

    draw_policies(outcomes, folder / "policies.png")
    return outcomes


def _run(
    trial: Trial,
    base: str,
    folder: Path,
    watch: Watch,
    spark: Any,
    td_s: float,
    guards: Guards | None,
    settings: Settings | None,
) -> Outcome:
    handle = run(trial.graph, base, spark=spark, policy=trial.policy, td_s=td_s, guards=guards, settings=settings)
    recorder = Recorder(handle)
    limit_s = _seconds(trial.graph) + DRAIN_S
    try:
        watch(handle, recorder.record, lambda elapsed: elapsed < limit_s)
    finally:
        handle.stop()
    place = folder / trial.label.replace(" ", "-").replace(":", "-").replace("=", "-")
    return Outcome(trial.label, write_report(recorder.record, events_of(handle.audit()), place), recorder.record)


COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "saved": lambda r: f"{r['saved_resources']:.4f}",
    "degradation": lambda r: f"{r['throughput_degradation']:.4f}",
    "processed": lambda r: f"{r['processed_ratio']:.4f}",
    "latency ms": lambda r: number(r["latency_ms"]["mean"]),
    "p95 ms": lambda r: number(r["latency_ms"]["p95"]),
    "lost": lambda r: str(r["events"]["dropped"]),
    "rescales": lambda r: str(r["rescales"]),
    "replica seconds": lambda r: number(r["replica_seconds"]),
    "longest tick with a rescale ms": lambda r: number(r["rescale_pause_ms"]["max"]),
    "tick p50 ms": lambda r: number(r["ticks"]["p50_ms"]),
    "longest tick ms": lambda r: number(r["ticks"]["max_ms"]),
}
"""The metrics of the PSPS paper first, then what they cost."""

BRIEF = 7
"""So many columns fit on a terminal."""


def outcome_table(outcomes: Sequence[Outcome], brief: bool = False) -> str:
    names = list(COLUMNS)[: BRIEF if brief else None]
    rows = [[outcome.label, *(COLUMNS[name](outcome.report) for name in names)] for outcome in outcomes]
    return table(["", *names], rows)


def _seconds(graph: Graph) -> float:
    return max(s.source.arrivals.seconds for s in graph.sources if isinstance(s.source, Replay))


def _lanes(graph: Graph) -> int:
    return sum(operator.replicas.most for operator in graph.served) + len(graph.sources)
