"""`elastream bench dataframe`: what a transformation costs in a dataframe operator, beside the plain query, in one run."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elastream_lab.bench.common.isolate import busy_cores, run_parts
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.common.tables import table
from elastream_lab.bench.connectors.frame_cost import LANES, FrameCost
from elastream_lab.bench.connectors.frame_work import WORK

GOAL = 1.3
"""What a transformation costs in a dataframe operator beyond the lanes, over what it costs in the plain query."""

IDLE = ("same", "none")
"""All tuples leave as they came, or none leaves."""

TITLES = {
    "sql": "eight digests and arithmetic",
    "join": "join with a table of 1,000 rows",
    "pandas": "pandas UDF: a small model",
    "windows": "count and mean by window and key",
}


@dataclass(frozen=True)
class DataframeBench:
    """Everything that was measured, in one run on one machine."""

    measured: tuple[FrameCost, ...]
    rows: int
    """Tuples of every tick, and of every micro-batch of the plain query."""
    cores: int
    busy_cores: float
    """What other processes used before it began: anything but about 0 makes the figures doubtful."""

    def cpu_ms(self, system: str, work: str) -> float:
        return next(cost.cpu_ms for cost in self.measured if (cost.system, cost.work) == (system, work))

    def beyond(self, system: str, work: str) -> float:
        """Of the work alone: beyond what does nothing in its place, with as many tuples in and out."""
        return self.cpu_ms(system, work) - self.cpu_ms(system, WORK[work].beside)

    @property
    def crossing(self) -> float:
        """Handing tuples from their lanes to Spark and what comes out back, with nothing done to them."""
        return self.cpu_ms("elastream", "same") - self.cpu_ms("elastream", LANES)

    def ratio(self, work: str) -> float:
        """Infinite where the work seems to cost one of them nothing: then it was not measured."""
        own, plain = self.beyond("elastream", work), self.beyond("plain", work)
        return own / plain if own > 0 and plain > 0 else math.inf

    def is_met(self, work: str) -> bool:
        return self.ratio(work) <= GOAL

    @property
    def met(self) -> bool:
        return all(self.is_met(work) for work in TITLES)

    @property
    def verdicts(self) -> dict[str, Any]:
        ratios = {work: self.ratio(work) if math.isfinite(self.ratio(work)) else None for work in TITLES}
        return {"crossing_ms": self.crossing, "ratios": ratios, "goal": GOAL, "met": self.met}

    def to_markdown(self) -> str:
        rows = [
            [
                title,
                f"{self.beyond('elastream', work):.0f}",
                f"{self.beyond('plain', work):.0f}",
                f"{self.ratio(work):.2f}",
                "yes" if self.is_met(work) else "**no**",
            ]
            for work, title in TITLES.items()
        ]
        return "\n\n".join(
            [
                "# Dataframe operators",
                f"`elastream bench dataframe` on {self.cores} cores, of which other processes used {self.busy_cores:.1f}. "
                f"Milliseconds of a core, all processes together, that the work adds to a tick of {self.rows:,} tuples with a "
                "dataframe operator that does nothing, and to a micro-batch of a plain query that does nothing, as many tuples in "
                "and out.",
                table(["", "operator", "plain", "ratio", f"at most {GOAL}"], rows),
                f"Such a tick costs {self.cpu_ms('elastream', LANES):.0f} ms with an operator that does nothing and is a "
                f"function, and {self.crossing:.0f} ms more with one that is a dataframe: from lanes to Spark, and back. "
                f"The micro-batch of the plain query that does nothing costs {self.cpu_ms('plain', 'same'):.0f} ms.",
            ]
        )


def bench_dataframe(quick: bool, say: Callable[[str], None]) -> DataframeBench:
    """Measure both systems in turn."""
    cores, busy = os.cpu_count() or 1, round(busy_cores(), 2)
    rows, warm_up_s, seconds = (3_000, 3.0, 4.0) if quick else (60_000, 20.0, 15.0)
    same = {"cores": cores, "rows": rows, "warm_up_s": warm_up_s, "seconds": seconds}
    measured: list[FrameCost] = []
    for work in (LANES, *IDLE, *TITLES):
        systems = {"frame_cost": "Elastream"} | ({"plain_cost": "the plain query"} if work != LANES else {})
        for name, system in systems.items():
            say(f"{system}, {work}")
            part = Part(name, f"{system}, {work}", {"work": work, **same}, warm_up_s + seconds + 20)
            measured += [FrameCost(**found) for found in run_parts([part])]
    return DataframeBench(tuple(measured), rows, cores, busy)
