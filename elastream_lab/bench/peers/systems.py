"""The systems that are compared: a row each, with every setting that is not a default."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from elastream_lab.bench.engine.tweets_load import POOL

HALF = POOL // 2


@dataclass(frozen=True)
class Row:
    """One way to run the workload."""

    name: str
    system: Literal["elastream", "flink", "storm"]
    settings: dict[str, str]
    """The system's own settings, by the names it knows them by."""
    autoscaler: dict[str, str] = field(default_factory=dict)
    """Those of Flink's autoscaler."""

    def needs(self) -> tuple[str, ...]:
        """The folders that `make peers` fetches for it."""
        return {"elastream": (), "flink": ("flink", "autoscaler"), "storm": ("storm",)}[self.system]


_FLINK = {
    "jobmanager.scheduler": "adaptive",
    "taskmanager.numberOfTaskSlots": str(POOL),
    "execution.checkpointing.interval": "1s",
    "execution.checkpointing.unaligned.enabled": "true",
    "execution.buffer-timeout.interval": "0ms",
    "taskmanager.network.memory.buffer-debloat.enabled": "true",
    "taskmanager.network.memory.buffer-debloat.target": "200ms",
    "metrics.fetcher.update-interval": "500ms",
}

_AUTOSCALER = {
    "job.autoscaler.enabled": "true",
    "job.autoscaler.vertex.min-parallelism": "1",
    "job.autoscaler.vertex.max-parallelism": str(POOL),
    "job.autoscaler.restart.time": "1s",
}

ROWS = (
    Row("Elastream, PSPS", "elastream", {"policy": "psps", "td_s": "2", "grouping": "load_balancing"}),
    Row("Elastream, elastic", "elastream", {"policy": "elastic", "grouping": "least_loaded"}),
    Row(
        "Flink, tuned to react",
        "flink",
        {**_FLINK, "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1s"},
        {
            **_AUTOSCALER,
            "every_ms": "1000",
            "job.autoscaler.metrics.window": "5s",
            "job.autoscaler.stabilization.interval": "1s",
            "job.autoscaler.utilization.target": "0.7",
            "job.autoscaler.scale-down.interval": "5s",
            "job.autoscaler.catch-up.duration": "5s",
        },
    ),
    Row(
        "Flink, tuned for calm",
        "flink",
        {**_FLINK, "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "5s"},
        {
            **_AUTOSCALER,
            "every_ms": "1000",
            "job.autoscaler.metrics.window": "10s",
            "job.autoscaler.stabilization.interval": "5s",
            "job.autoscaler.utilization.target": "0.8",
            "job.autoscaler.scale-down.interval": "30s",
            "job.autoscaler.catch-up.duration": "10s",
        },
    ),
    Row(f"Storm, {HALF} replicas", "storm", {}),
    Row(f"Storm, rebalance {HALF} to {POOL}", "storm", {"rebalance": "halfway"}),
)


def not_fetched(row: Row, peers: Path) -> str | None:
    """The one line that says how to fetch what a row needs; None when it is there."""
    for name in row.needs():
        if not (peers / name / "version").is_file() or not (peers / name / "classes").is_dir():
            return f"{row.name}: expected {name} in {peers / name}, found none; fetch it: make peers"
    return None


def versions(row: Row, peers: Path) -> dict[str, str]:
    """By part: the version that was fetched."""
    return {name: (peers / name / "version").read_text(encoding="utf-8").strip() for name in row.needs()}


def classpath(peers: Path, *names: str) -> list[str]:
    """Of each its classes, then its jars."""
    return [
        str(path)
        for name in names
        for path in ((peers / name / "classes").resolve(), (peers / name / "jars").resolve() / "*")
    ]
