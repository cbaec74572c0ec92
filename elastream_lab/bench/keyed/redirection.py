"""`elastream bench redirection`: skewed keys by `fields`, by redirection of key groups, and with heavy keys split."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elastream_lab.bench.common.isolate import busy_cores, run_part
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.common.tables import table
from elastream_lab.bench.keyed.redirection_runs import KEYS, REPLICAS, SERVICE_S, ZIPF, Skewed

WAYS = ("fields", "redirection", "split")
BEARABLE_PER_S = 400.0
"""More than the lane of the heaviest key serves beside its other groups, less than it serves when it has that one alone."""
TOO_MUCH_PER_S = 900.0
"""More than one lane can serve of the heaviest key, less than all lanes together can serve."""


@dataclass(frozen=True)
class RedirectionBench:
    """Every way at both rates."""

    bearable: tuple[Skewed, ...]
    too_much: tuple[Skewed, ...]
    cores: int
    busy_cores: float

    def goals(self) -> dict[str, tuple[str, bool]]:
        """By what is measured: the figure, and whether it meets its goal."""
        fields, redirected, split = self.bearable
        lb_fields, lb = fields.lb_mean, redirected.lb_mean
        sooner = 1 - redirected.latency_p95_ms / fields.latency_p95_ms
        more = redirected.finished_per_s / fields.finished_per_s - 1
        heavy = {one.way: one for one in self.too_much}
        split_more = heavy["split"].finished_per_s / heavy["redirection"].finished_per_s - 1
        split_sooner = 1 - split.latency_p95_ms / redirected.latency_p95_ms
        return {
            "lb with redirection (at most 0.3) where fields exceeds 0.5": (
                f"{lb:.2f}, {lb_fields:.2f}",
                lb <= 0.3 and lb_fields > 0.5,
            ),
            "p95 latency lower than with fields by (at least 20 %)": (f"{sooner:.0%}", sooner >= 0.2),
            "throughput higher than with fields by (at least 17 %)": (f"{more:.0%}", more >= 0.17),
            "splitting heavy keys: p95 latency lower again by (more than 0)": (f"{split_sooner:.0%}", split_sooner > 0),
            "splitting heavy keys, where one is too much for a replica: throughput higher by (more than 0)": (
                f"{split_more:.0%}",
                split_more > 0,
            ),
            "every tuple counted once (all runs)": (
                "yes" if all(one.same for one in (*self.bearable, *self.too_much)) else "**no**",
                all(one.same for one in (*self.bearable, *self.too_much)),
            ),
        }

    @property
    def met(self) -> bool:
        return all(met for _, met in self.goals().values())

    @property
    def verdicts(self) -> dict[str, Any]:
        return {
            "met": self.met,
            "goals": {name: {"measured": m, "met": met} for name, (m, met) in self.goals().items()},
        }

    def to_markdown(self) -> str:
        rows = [
            [
                one.way,
                f"{one.offered_per_s:,.0f}",
                f"{one.finished_per_s:,.0f}",
                f"{one.latency_mean_ms:,.0f}",
                f"{one.latency_p95_ms:,.0f}",
                f"{one.lb_mean:.2f}",
                f"{one.ratio_max:.2f}",
                str(one.redirections),
            ]
            for one in (*self.bearable, *self.too_much)
        ]
        goals = [[name, measured, "yes" if met else "**no**"] for name, (measured, met) in self.goals().items()]
        return "\n\n".join(
            [
                "# Redirection",
                f"`elastream bench redirection`: {KEYS:,} keys, Zipf {ZIPF:g}, a count of {SERVICE_S * 1e3:g} ms a tuple in {REPLICAS} "
                f"replicas, on {self.cores} cores, of which other processes used {self.busy_cores:.1f}.",
                table(
                    [
                        "way",
                        "offered/s",
                        "served/s",
                        "latency mean ms",
                        "p95 ms",
                        "lb",
                        "highest load ratio",
                        "redirections",
                    ],
                    rows,
                ),
                table(["goal", "measured", "met"], goals),
            ]
        )


def bench_redirection(quick: bool, say: Callable[[str], None]) -> RedirectionBench:
    settle_s, seconds = (3.0, 3.0) if quick else (10.0, 20.0)
    busy = round(busy_cores(), 2)
    found: list[Skewed] = []
    for per_s in (BEARABLE_PER_S, TOO_MUCH_PER_S):
        for way in WAYS:
            say(f"part {len(found) + 1} of 6: {way} at {per_s:,.0f} tuples/s")
            arguments = {"way": way, "offered_per_s": per_s, "settle_s": settle_s, "seconds": seconds}
            part = Part("skewed", f"{way} at {per_s:,.0f} tuples/s", arguments, 3 * (settle_s + seconds) + 20)
            found.append(Skewed(**run_part(part)))
    return RedirectionBench(tuple(found[:3]), tuple(found[3:]), os.cpu_count() or 1, busy)
