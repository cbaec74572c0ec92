"""What a run of the benchmark found: figures of every part, and the goals they are judged by."""

from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from elastream_lab.bench.common import tables
from elastream_lab.bench.common.schedule import JUDGED_LANES
from elastream_lab.bench.engine.busy import Busy
from elastream_lab.bench.engine.floor import Floor
from elastream_lab.bench.engine.footprint import Footprint
from elastream_lab.bench.engine.rescale import Rescale, Restart
from elastream_lab.bench.engine.start import Start
from elastream_lab.bench.engine.throughput import Sustained, Throughput
from elastream_lab.bench.engine.ticks import TickTimes
from elastream_lab.bench.engine.tweets import TweetsRun


@dataclass(frozen=True)
class Goal:
    """One figure beside what it should be."""

    name: str
    measured: float | None
    """None when a part that it needs failed."""
    limit: float
    direction: Literal["at most", "at least"]
    met: bool
    aim: float | None = None
    """What would be better still."""


@dataclass(frozen=True)
class Machine:
    """Where it was measured, and how quiet it was there."""

    cores: int
    memory_gb: float
    python: str
    spark: str
    busy_cores: tuple[float, ...]
    """What other processes used just before each part: anything but about 0 makes the figures doubtful."""


@dataclass(frozen=True)
class EngineBench:
    """Everything that was measured, in one run on one machine."""

    quick: bool
    seconds: float
    machine: Machine
    floors: tuple[Floor, ...]
    ticks: tuple[TickTimes, ...]
    throughput: tuple[Throughput, ...]
    sustained: Sustained | None
    rescales: tuple[Rescale, ...]
    restarts: tuple[Restart, ...]
    footprints: tuple[Footprint, ...]
    busy: tuple[Busy, ...]
    starts: tuple[Start, ...]
    tweets: TweetsRun | None
    failures: tuple[str, ...]
    """Parts that could not be measured, and why."""

    @property
    def floor_ms(self) -> float | None:
        """The strictest floor: the ticks' own settings, the median of the times it was measured."""
        strict = [floor.p50_ms for floor in self.floors if floor.kind == "strict"]
        return median(strict) if strict else None

    def best(self, system: str, work: str) -> Throughput | None:
        """The best configuration of a system."""
        found = [t for t in self.throughput if (t.system, t.work) == (system, work)]
        return max(found, key=lambda t: t.per_second, default=None)

    def share_of_plain(self, work: str) -> float | None:
        own, plain = self.best("elastream", work), self.best("plain", work)
        return own.per_second / plain.per_second if own and plain else None

    @property
    def met(self) -> bool:
        return all(goal.met for goal in self.goals())

    def goals(self) -> list[Goal]:
        floor_ms = self.floor_ms
        judged = next((times for times in self.ticks if times.lanes == JUDGED_LANES), None)
        latency = judged.latency_mean_ms / floor_ms if judged and floor_ms else None
        rate = self.sustained.finished_per_s if self.sustained else None
        whole = self.sustained is not None and self.sustained.is_whole
        beyond = max((rescale.beyond_ms for rescale in self.rescales), default=None)
        share = min((busy.share for busy in self.busy), default=None)
        start_s = min((start.first_tuple_s for start in self.starts), default=None)
        goals = [
            _at_most("four hops through empty operators / Spark's floor", latency, 1.0, 0.5),
            _at_least("throughput with 20 µs a tuple / plain query", self.share_of_plain("20us"), 0.85, 1.0),
            _at_least("tuples/s through four empty operators, none lost", rate, 1_000_000, 2_000_000, also=whole),
            _at_most("time without output around a rescale beyond the usual, ms", beyond, 50.0),
            _at_least("share of its time that a busy replica serves", share, 0.9, 0.95),
            _at_most("start of a run without a query, to the first tuple finished, s", start_s, 8.0),
        ]
        if self.quick:
            return goals
        found = self.tweets
        exact = found is not None and not found.missing and not found.doubled and found.processed >= 0.9987
        return [
            *goals,
            _at_most("tweets, PSPS: mean latency, ms", found.latency_mean_ms if found else None, 400, 150),
            _at_most("tweets, PSPS: p95 latency, ms", found.latency_p95_ms if found else None, 1500, 500),
            _at_most("tweets, PSPS: CPU seconds of all processes", found.cpu_s if found else None, 160, 110),
            _at_least(
                "tweets, PSPS: saved resources, none lost or doubled", found.saved if found else None, 0.69, also=exact
            ),
        ]

    @property
    def verdicts(self) -> dict[str, Any]:
        return {"floor_ms": self.floor_ms, "goals": self.goals()}

    def to_markdown(self) -> str:
        sections = [
            "# The engine beside Spark itself",
            self._where(),
            self._judged(),
            tables.failures(self.failures),
            tables.floors(self.floors, self.floor_ms),
            tables.ticks(self.ticks, self.floor_ms),
            tables.throughput(self.throughput),
            tables.sustained(self.sustained) if self.sustained else "",
            tables.rescales(self.rescales, self.restarts),
            tables.busy(self.busy),
            tables.tweets(self.tweets) if self.tweets else "",
            tables.footprints(self.footprints),
        ]
        return "\n\n".join(section for section in sections if section) + "\n"

    def _judged(self) -> str:
        rows = [
            [
                goal.name,
                tables.number(goal.measured),
                f"{goal.direction} {tables.number(goal.limit)}",
                tables.number(goal.aim) if goal.aim else "",
                "yes" if goal.met else "**no**",
            ]
            for goal in self.goals()
        ]
        return tables.table(["goal", "measured", "limit", "aim", "met"], rows)

    def _where(self) -> str:
        m = self.machine
        quiet = f"Other processes used {max(m.busy_cores, default=0.0):.1f} of its cores at worst before a part began"
        quick = " **Quick run: does it work, not how fast is it.**" if self.quick else ""
        return (
            f"`elastream bench engine`: {self.seconds:.0f} s on {m.cores} cores, {m.memory_gb:.0f} GB, Python {m.python}, "
            f"Spark {m.spark}. {quiet} (median {median(m.busy_cores or (0.0,)):.1f}).{quick}"
        )


def _at_most(name: str, measured: float | None, limit: float, aim: float | None = None) -> Goal:
    return Goal(name, measured, limit, "at most", measured is not None and measured <= limit, aim)


def _at_least(name: str, measured: float | None, limit: float, aim: float | None = None, *, also: bool = True) -> Goal:
    return Goal(name, measured, limit, "at least", measured is not None and measured >= limit and also, aim)
