"""How true the simulator is: the same scenarios on Spark and simulated, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elastream.report.series import Sample
from elastream_lab.bench.common.tables import table
from elastream_lab.bench.suites.outcomes import Outcome
from elastream_lab.bench.suites.runner import Plant, run_suite
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.suite import Suite

GOALS = {"replicas": 0.9, "processed": 0.01, "latency": 0.25, "saved": 0.05}

WORKLOADS: dict[str, dict[str, Any]] = {
    "covid_tweets": {"workload": "covid_tweets", "speed": 30, "scale": 0.84},
    "worldcup98": {"workload": "worldcup98_matchday", "speed": 480, "scale": 0.0005},
}
POLICIES = {"PSPS": "psps", "r = 1": "static:replicas=1", "r = 8": "static:replicas=8"}


@dataclass(frozen=True)
class Fidelity:
    """One scenario, simulated against measured."""

    name: str
    replicas: float
    """The share of intervals and operators in which the two differ by at most one replica."""
    processed: float
    """Simulated minus measured, in parts of measured, and so below."""
    latency: float
    saved: float
    """Simulated minus measured."""

    @property
    def met(self) -> bool:
        return (
            self.replicas >= GOALS["replicas"]
            and abs(self.processed) <= GOALS["processed"]
            and abs(self.latency) <= GOALS["latency"]
            and abs(self.saved) <= GOALS["saved"]
        )

    @property
    def verdicts(self) -> dict[str, Any]:
        return {"met": self.met}


def fidelity_scenarios() -> tuple[Scenario, ...]:
    """PSPS, one replica and all of them, on two traces."""
    return tuple(
        Scenario(f"{trace} / {label}", policy=policy, td_s=2.0, service_ms=5.0, pool=8, r_over=32, **workload)
        for trace, workload in WORKLOADS.items()
        for label, policy in POLICIES.items()
    )


def bench_fidelity(
    scenarios: Sequence[Scenario],
    spark: Plant,
    simulator: Plant,
    folder: Path,
    say: Callable[[str], None],
    *,
    again: bool,
) -> list[Fidelity]:
    measured = run_suite(
        Suite("spark", "Measured on Spark", tuple(scenarios)), spark, folder / "spark", say, again=again
    )
    simulated = run_suite(
        Suite("simulator", "Simulated", tuple(scenarios)), simulator, folder / "simulator", say, again=True
    )
    return [compare(real, model) for real, model in zip(measured, simulated, strict=True)]


def compare(measured: Outcome, simulated: Outcome) -> Fidelity:
    real, model = measured.report, simulated.report
    return Fidelity(
        measured.label,
        replicas_alike(measured, simulated),
        _relative(model["processed_ratio"], real["processed_ratio"]),
        _relative(model["latency_ms"]["mean"], real["latency_ms"]["mean"]),
        model["saved_resources"] - real["saved_resources"],
    )


def replicas_alike(measured: Outcome, simulated: Outcome) -> float:
    """Looked at once an interval, in its middle, while both run."""
    td_s = measured.record.interval_s
    alike = seen = 0
    for name in measured.record.pools:
        real, model = measured.record.series.operators[name], simulated.record.series.operators[name]
        until_s = min(real[-1].t_s, model[-1].t_s)
        times = np.arange(td_s / 2, until_s, td_s)
        alike += int(np.sum(np.abs(_at(real, times) - _at(model, times)) <= 1))
        seen += len(times)
    return alike / seen if seen else 0.0


def _at(samples: Sequence[Sample], times: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Any:
    ends = np.array([sample.t_s for sample in samples])
    sizes = np.array([sample.replicas for sample in samples])
    return sizes[np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(sizes) - 1)]


def _relative(value: float, of: float) -> float:
    return float(value / of - 1) if of else 0.0


def fidelity_table(found: Sequence[Fidelity]) -> str:
    head = ["", "replicas within 1", "processed", "mean latency", "saved", "met"]
    rows = [
        [
            its.name,
            f"{its.replicas:.1%}",
            f"{its.processed:+.2%}",
            f"{its.latency:+.1%}",
            f"{its.saved:+.3f}",
            "yes" if its.met else "no",
        ]
        for its in found
    ]
    goals = ["goal", ">= 90%", "1%", "25%", "0.05", ""]
    return table(head, [*rows, goals])
