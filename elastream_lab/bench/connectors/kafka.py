"""`elastream bench kafka`: from topic to topic, Elastream beside the plain query, in one run on one broker."""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from elastream.testing.broker import kafka_broker
from elastream_lab.bench.common.isolate import busy_cores, run_part, run_parts
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.common.tables import number, table
from elastream_lab.bench.connectors.kafka_throughput import Filled, FromTopicToTopic

GOAL = 0.5
"""Elastream through two empty operators, over the plain query."""

TOPIC = "bench"


@dataclass(frozen=True)
class KafkaBench:
    """Everything that was measured, in one run on one machine."""

    filled: Filled
    measured: tuple[FromTopicToTopic, ...]
    cores: int
    busy_cores: float
    """What other processes used before it began: anything but about 0 makes the figures doubtful."""

    def best(self, system: str) -> FromTopicToTopic:
        return max((m for m in self.measured if m.system == system), key=lambda m: m.per_second)

    @property
    def ratio(self) -> float:
        return self.best("elastream").per_second / self.best("plain").per_second

    @property
    def met(self) -> bool:
        return self.ratio >= GOAL and not any(m.problems for m in self.measured)

    @property
    def verdicts(self) -> dict[str, Any]:
        return {"ratio": self.ratio, "goal": GOAL, "met": self.met}

    def to_markdown(self) -> str:
        rows = [
            [f"{m.system}, {m.config}", number(m.per_second), f"{m.seconds:.0f}", str(m.batches)] for m in self.measured
        ]
        filled, met = self.filled, "yes" if self.met else "**no**"
        return "\n\n".join(
            [
                "# From topic to topic",
                f"`elastream bench kafka`: {filled.records:,} records of {filled.bytes_each} bytes in {filled.partitions} "
                f"partitions, the broker on the same {self.cores} cores; other processes used {self.busy_cores:.1f} of them. "
                "Elastream goes through two operators that do nothing.",
                table(["", "records/s", "measured s", "batches"], rows),
                f"Elastream / plain query: **{self.ratio:.2f}** (goal: at least {GOAL}; met: {met})",
            ]
        )


def bench_kafka(quick: bool, say: Callable[[str], None]) -> KafkaBench:
    """Start a broker, fill a topic, measure both."""
    cores = os.cpu_count() or 1
    busy = round(busy_cores(), 2)
    records = 150_000 if quick else 3_000_000
    # Plain micro-batches may be as long as they like; ticks of this size are about a second.
    sizes = [(25_000, 25_000)] if quick else [(100_000, 100_000), (400_000, 200_000)]
    with kafka_broker() as broker:
        say(f"filling a topic with {records:,} records")
        filled = Filled(**run_part(_fill(broker.servers, records)))
        measured = []
        for part in _parts(broker.servers, filled, cores, sizes):
            say(part.label)
            measured += [FromTopicToTopic(**document) for document in run_parts([part])]
    return KafkaBench(filled, tuple(measured), cores, busy)


def _fill(servers: str, records: int) -> Part:
    arguments = {"servers": servers, "topic": TOPIC, "records": records, "bytes_each": 100, "partitions": 4}
    return Part("kafka_fill", "filling a topic", arguments, 10 + records / 100_000)


def _parts(servers: str, filled: Filled, cores: int, sizes: list[tuple[int, int]]) -> Iterator[Part]:
    """What is compared is measured close together: the plain query, then ours, with sizes of batch and tick."""
    same = {"servers": servers, "filled": asdict(filled), "cores": cores}
    expected_s = 15 + filled.records / 75_000
    for batch, tick in sizes:
        yield Part("kafka_plain", f"the plain query, {batch:,} a batch", {**same, "most": batch}, expected_s)
        own = {**same, "most": tick, "replicas": 2}
        yield Part("kafka_elastream", f"Elastream, {tick:,} a tick", own, expected_s)
