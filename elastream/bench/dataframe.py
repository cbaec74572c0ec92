"""`elastream bench dataframe`: what a transformation costs in a dataframe operator, beside the plain query, in one run."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elastream.bench.frame_cost import EMPTY, FrameCost
from elastream.bench.isolate import busy_cores, run_parts
from elastream.bench.schedule import Part
from elastream.bench.tables import table

GOAL = 1.3
"""What a transformation costs in a dataframe operator beyond the lanes, over what it costs in the plain query."""

JUDGED = ("pandas", "windows")
"""Work that is worth an operator of its own."""

OTHERS = ("sql", "join")
"""Work so small that handing the rows to Spark and back costs more than the work."""

TITLES = {
    "same": "nothing, in a dataframe operator",
    "sql": "digest, arithmetic, filter",
    "pandas": "pandas UDF: a small model",
    "join": "join with a table of 1,000 rows",
    "windows": "count and mean by window and key",
}


@dataclass(frozen=True)
class DataframeBench:
    """Everything that was measured, in one run on one machine."""

    measured: tuple[FrameCost, ...]
    cores: int
    busy_cores: float
    """What other processes used before it began: anything but about 0 makes the figures doubtful."""

    def cost(self, system: str, work: str) -> float:
        return next(its.us_each for its in self.measured if (its.system, its.work) == (system, work))

    def beyond(self, system: str, work: str) -> float:
        """Of the work alone: beyond a system that does nothing to its tuples."""
        return self.cost(system, work) - self.cost(system, EMPTY)

    @property
    def crossing(self) -> float:
        """Handing a tuple from its lane to Spark and what comes out back, with nothing done to it."""
        return self.beyond("elastream", "same")

    def ratio(self, work: str) -> float:
        return self.beyond("elastream", work) / self.beyond("plain", work)

    @property
    def met(self) -> bool:
        return all(0 < self.ratio(work) <= GOAL for work in JUDGED)

    def to_json(self) -> dict[str, Any]:
        ratios = {work: self.ratio(work) for work in (*JUDGED, *OTHERS)}
        return asdict(self) | {"crossing_us": self.crossing, "ratios": ratios, "goal": GOAL, "met": self.met}

    def to_markdown(self) -> str:
        rows = [
            [
                TITLES[work],
                f"{self.beyond('elastream', work):.2f}",
                f"{self.beyond('plain', work):.2f}",
                f"{self.ratio(work):.2f}",
                f"{(self.beyond('elastream', work) - self.crossing) / self.beyond('plain', work):.2f}",
                ("yes" if 0 < self.ratio(work) <= GOAL else "**no**") if work in JUDGED else "",
            ]
            for work in (*JUDGED, *OTHERS)
        ]
        own = next(its for its in self.measured if its.system == "elastream")
        return "\n\n".join(
            [
                "# Dataframe operators",
                f"`elastream bench dataframe`: {own.per_second:,.0f} tuples/s on {self.cores} cores, of which other processes used "
                f"{self.busy_cores:.1f}. Microseconds of a core that the work costs a tuple, all processes together: in an "
                "operator, beyond an operator that does nothing; in a plain query, beyond a query that does nothing, with "
                "micro-batches as long as the ticks were.",
                table(["", "operator", "plain", "ratio", "ratio less the crossing", f"at most {GOAL}"], rows),
                f"An operator that does nothing costs {self.cost('elastream', EMPTY):.2f} µs a tuple with its source and sink; a "
                f"dataframe operator that does nothing {self.crossing:.2f} µs more: from a lane to Spark, and back.",
            ]
        )


def bench_dataframe(report: Path | None, quick: bool, say: Callable[[str], None]) -> DataframeBench:
    """Measure both systems in turn; with `report`, write dataframe.json and dataframe.md there."""
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    cores, busy = os.cpu_count() or 1, round(busy_cores(), 2)
    times = {"warm_up_s": 3.0, "seconds": 4.0} if quick else {"warm_up_s": 10.0, "seconds": 15.0}
    same = {"cores": cores, "per_second": 20_000.0 if quick else 60_000.0, **times}
    expected_s = times["warm_up_s"] + times["seconds"] + 10
    measured: list[FrameCost] = []
    for work in (EMPTY, "same", *JUDGED, *OTHERS):
        say(f"Elastream, {work}")
        part = Part("frame_cost", f"Elastream, {work}", {"work": work, **same}, expected_s)
        own = FrameCost(**next(run_parts([part])))
        measured.append(own)
        if work != "same":
            say(f"the plain query, {work}")
            plain = {"work": work, "batch_s": own.batch_s, **same}
            measured.append(
                FrameCost(**next(run_parts([Part("plain_cost", f"the plain query, {work}", plain, expected_s)])))
            )
    bench = DataframeBench(tuple(measured), cores, busy)
    if report is not None:
        (report / "dataframe.json").write_text(json.dumps(bench.to_json(), indent=1) + "\n", encoding="utf-8")
        (report / "dataframe.md").write_text(bench.to_markdown() + "\n", encoding="utf-8")
        say(f"report written to {report}")
    return bench
