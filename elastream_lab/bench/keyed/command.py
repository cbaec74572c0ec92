"""`elastream bench keyed`: state per key against no state and against Spark's own, moved, lost with its host, started again."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elastream_lab.bench.common.isolate import busy_cores, run_part
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.common.tables import table
from elastream_lab.bench.keyed.runs import KeyedStory, Rate, Recovery, Restarted

PER_S = 20_000.0
MOST_WAITED_MS = 100.0
MOST_RECOVERY_S = 1.0
MOST_RESTART_S = 10.0


@dataclass(frozen=True)
class KeyedBench:
    """What was measured, and whether it is what it should be."""

    rates: tuple[Rate, ...]
    story: KeyedStory
    recoveries: tuple[Recovery, ...]
    restarted: Restarted
    cores: int
    busy_cores: float

    def goals(self) -> dict[str, tuple[str, bool]]:
        """By what is measured: the figure, and whether it meets its goal."""
        rate = {one.way: one for one in self.rates}
        story = self.story
        share = rate["keyed"].finished_per_s / rate["without state"].finished_per_s
        beside = rate["keyed"].finished_per_s / rate["spark"].finished_per_s
        late = rate["keyed"].latency_p95_ms / rate["spark"].latency_p95_ms
        ring = next(one for one in self.recoveries if one.ring)
        most = 2 * story.arrow_per_key + 64
        return {
            "throughput / the same without state (at least 0.8)": (f"{share:.2f}", share >= 0.8),
            "throughput / Spark's count (at least 1)": (f"{beside:.2f}", beside >= 0.99),
            "p95 latency / Spark's count (at most 0.25)": (f"{late:.2f}", late <= 0.25),
            "2 to 8 replicas: the longest a key waited (at most 100 ms)": (
                f"{story.waited_ms:.0f} ms",
                story.waited_ms <= MOST_WAITED_MS and story.same,
            ),
            "a host killed: its keys served again (at most 1 s with the ring)": (
                f"{ring.longest_s:.2f} s",
                ring.longest_s <= MOST_RECOVERY_S,
            ),
            "lost or doubled over all kills and rescales (none)": (
                "none" if all(one.same for one in self.recoveries) else "**some**",
                all(one.same for one in self.recoveries) and story.counted == story.entered and not story.problems,
            ),
            f"memory per key (at most {most:.0f} B)": (f"{story.memory_per_key:.0f} B", story.memory_per_key <= most),
            "restart to the first tuple (at most 10 s)": (
                f"{self.restarted.first_tuple_s:.1f} s",
                self.restarted.first_tuple_s <= MOST_RESTART_S,
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
        story = self.story
        rates = [
            [
                one.way,
                f"{one.offered_per_s:,.0f}",
                f"{one.finished_per_s:,.0f}",
                f"{one.latency_mean_ms:,.0f}",
                f"{one.latency_p95_ms:,.0f}",
            ]
            for one in self.rates
        ]
        recoveries = [
            [
                "yes" if one.ring else "no",
                str(one.kills),
                f"{one.median_s:.2f}",
                f"{one.longest_s:.2f}",
                "yes" if one.same else "**no**",
            ]
            for one in self.recoveries
        ]
        goals = [[name, measured, "yes" if met else "**no**"] for name, (measured, met) in self.goals().items()]
        return "\n\n".join(
            [
                "# Keyed state",
                f"`elastream bench keyed`: a count of {story.keys:,} keys, on {self.cores} cores, of which other processes used "
                f"{self.busy_cores:.1f}.",
                table(["count", "offered/s", "finished/s", "latency mean ms", "p95 ms"], rates),
                f"From 2 to 8 replicas: {story.moved_groups} key groups moved, {story.between_hosts} of them with {story.moved_keys:,} keys "
                f"to another host, in {story.move_took_ms:,.0f} ms. On disk in the end: {story.disk_bytes / 1e6:,.0f} MB.",
                table(["ring", "hosts killed", "median s", "longest s", "every tuple counted once"], recoveries),
                table(["goal", "measured", "met"], goals),
            ]
        )


def bench_keyed(quick: bool, say: Callable[[str], None]) -> KeyedBench:
    keys = 20_000 if quick else 1_000_000
    fill_s = 4.0 if quick else keys / PER_S
    seconds = 3.0 if quick else 20.0
    kills = 2 if quick else 10
    arguments = {"keys": keys, "offered_per_s": PER_S, "fill_s": fill_s}
    parts = [
        *(
            Part(
                "keyed_rate",
                f"a count of {keys:,} keys, {way}",
                {"way": way, **arguments, "seconds": seconds},
                fill_s + seconds + 20,
            )
            for way in ("keyed", "without state")
        ),
        Part("spark_count", "Spark's own count", {**arguments, "seconds": seconds}, fill_s + seconds + 20),
        Part("keyed_story", "2 to 8 replicas, and a recount", {**arguments, "seconds": seconds}, fill_s + seconds + 50),
        *(
            Part(
                "recovery",
                f"{kills} hosts killed, {'with' if ring else 'without'} the ring",
                {"ring": ring, **arguments, "kills": kills},
                fill_s + 6 * kills + 30,
            )
            for ring in (True, False)
        ),
        Part("keyed_restart", "a base started again", {"keys": keys, "offered_per_s": PER_S * 3}, keys / PER_S + 30),
    ]
    busy = round(busy_cores(), 2)
    results = []
    for number, part in enumerate(parts):
        say(f"part {number + 1} of {len(parts)}: {part.label}")
        results.append(run_part(part))
    return KeyedBench(
        tuple(Rate(**one) for one in results[:3]),
        KeyedStory(**results[3]),
        tuple(Recovery(**one) for one in results[4:6]),
        Restarted(**results[6]),
        os.cpu_count() or 1,
        busy,
    )
