"""Observations written by hand: only what a test is about has to be said."""

from dataclasses import replace
from typing import Any

from elastream.control import Observation, OperatorObservation


def source(name: str, processed: int, **more: Any) -> OperatorObservation:
    """A source that brought in so many tuples."""
    base = OperatorObservation(name, 1, 0, {}, processed, processed, 0, 0, 0.0, 0.0, role="source")
    return replace(base, **more)


def operator(
    name: str, received_from: dict[str, int], *, service_ms: float = 1.0, replicas: int = 1, **more: Any
) -> OperatorObservation:
    """An operator that received so many from each predecessor, and processed all of them unless `processed` says other."""
    received = sum(received_from.values())
    processed = int(more.pop("processed", received))
    base = OperatorObservation(
        operator=name,
        replicas=replicas,
        received=received,
        received_from=received_from,
        processed=processed,
        emitted=processed,
        queued=0,
        dropped=0,
        busy_seconds=processed * service_ms / 1e3,
        service_seconds=service_ms / 1e3,
        most=1024,
    )
    return replace(base, **more)


def observation(
    *operators: OperatorObservation, seconds: float = 1.0, ended_s: float = 0.0, slots: int = 1024
) -> Observation:
    """These operators over one interval, in topological order."""
    return Observation(
        tick=0,
        ended_s=ended_s,
        seconds=seconds,
        ticks=1,
        slots=slots,
        entered=sum(o.processed for o in operators if o.role == "source"),
        finished=operators[-1].processed,
        dropped=sum(o.dropped for o in operators),
        queued=sum(o.queued for o in operators),
        latency_mean_s=0.0,
        latency_p95_s=0.0,
        operators={o.operator: o for o in operators},
    )
