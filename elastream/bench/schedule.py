"""Which parts are measured, in which order, with which arguments: full or quick."""

from dataclasses import dataclass
from typing import Any

from elastream.bench.rescale import MANY
from elastream.bench.watch import OPERATORS

JUDGED_LANES = 8
"""The number of lanes, in all four operators together, at which ticks and latency are judged."""

OFFERED_PER_S = 420_000
"""A little more than the goal of 400,000, so that a rate as good as the goal is not one that only kept up."""

FLOOR_MASTER = f"local[{JUDGED_LANES + 1},4]"
"""What a run with the judged number of lanes, and its source, gets."""

RESCALE_MASTER = f"local[{MANY * len(OPERATORS) + 1},4]"
"""What the runs that rescale get."""


@dataclass(frozen=True)
class Part:
    """One process's worth of measuring."""

    name: str
    """As `elastream.bench.parts` knows it."""
    label: str
    arguments: dict[str, Any]
    expected_s: float
    """On a quiet machine with two cores."""


def schedule(quick: bool, cores: int) -> list[list[Part]]:
    """Parts in one list share a process, and with it a Spark session.

    The machine's noise drifts, so what is compared is measured close together: floors around the judged ticks, both
    systems' throughput in turn.
    """
    return _quick(cores) if quick else _full(cores)


def _full(cores: int) -> list[list[Part]]:
    own = f"local[{cores},4]"
    return [
        [_ticks(4, 60, 150, 45)],
        [_floor("strict", FLOOR_MASTER, 60, 150, 30)],
        [_ticks(JUDGED_LANES, 60, 150, 45)],
        [_floor("strict", FLOOR_MASTER, 60, 150, 30)],
        [_ticks(16, 60, 150, 47)],
        [_ticks(32, 60, 150, 50)],
        [_floor("python", FLOOR_MASTER, 30, 80, 25)],
        [_floor("default", FLOOR_MASTER, 30, 80, 30)],
        [
            _throughput("20us", own, 40_000, 12, 10, 38),
            _throughput("empty", own, 2_500_000, 12, 8, 25),
            _sustained(own, 8, 20, 32),
        ],
        [
            _plain("20us", cores, [30_000, 120_000], 3, 8, 50),
            _plain("20us in one function", cores, [60_000], 1, 8, 15),
            _plain("empty", cores, [200_000, 1_000_000], 2, 6, 22),
        ],
        [
            _throughput("20us", None, 40_000, 12, 10, 40),
            _throughput("empty", None, 2_500_000, 12, 8, 25),
        ],
        [_rescale(300, 20, 10, 10, 42), _rescale(1000, 15, 10, 10, 38)],
        [_restart("empty", MANY, 3, 5, 50), _restart("2ms", MANY, 3, 4, 50)],
        [_footprint(250_000, 40_000, 1, 5, 32), _footprint(20_000, 2000, 8, 3, 25)],
    ]


def _quick(cores: int) -> list[list[Part]]:
    """Two sessions, one with the settings of ticks and one with Spark's own: starting them takes most of the time."""
    return [
        [
            _floor("strict", RESCALE_MASTER, 8, 15, 13),
            _ticks(JUDGED_LANES, 8, 15, 12),
            _throughput("20us", None, 40_000, 1, 1.5, 7),
            _sustained(None, 1, 2.5, 7),
            _rescale(300, 3, 1.5, 1.5, 10),
            _footprint(20_000, 20_000, 1, 1, 8),
        ],
        [_restart("empty", 4, 1, 3, 18), _plain("20us", cores, [10_000], 0, 1.5, 8)],
    ]


def _floor(kind: str, master: str, warm_up: int, count: int, expected_s: float) -> Part:
    what = {
        "strict": "an empty micro-batch with the settings of ticks",
        "python": "an empty micro-batch from a Python source",
        "default": "an empty micro-batch with Spark's default settings",
    }[kind]
    arguments = {"kind": kind, "master": master, "warm_up": warm_up, "count": count}
    return Part("floor", f"Spark's floor: {what}", arguments, expected_s)


def _ticks(lanes: int, warm_up: int, count: int, expected_s: float) -> Part:
    return Part(
        "ticks",
        f"ticks and four-hop latency at {lanes} lanes",
        {"lanes": lanes, "warm_up": warm_up, "count": count},
        expected_s,
    )


def _throughput(
    work: str, master: str | None, offered_per_s: float, warm_up_s: float, seconds: float, expected_s: float
) -> Part:
    return Part(
        "throughput",
        f"Elastream's throughput, {work}, {master or 'a slot for each lane'}",
        {
            "work": work,
            "master": master,
            "replicas": 2,
            "offered_per_s": offered_per_s,
            "warm_up_s": warm_up_s,
            "seconds": seconds,
        },
        expected_s,
    )


def _plain(work: str, cores: int, sizes: list[int], warm_up_s: float, seconds: float, expected_s: float) -> Part:
    return Part(
        "plain",
        f"a plain query's throughput, {work}",
        {"work": work, "cores": cores, "sizes": sizes, "warm_up_s": warm_up_s, "seconds": seconds},
        expected_s,
    )


def _sustained(master: str | None, warm_up_s: float, seconds: float, expected_s: float) -> Part:
    return Part(
        "sustained",
        f"{OFFERED_PER_S:,} tuples/s through four empty operators, to the last tuple",
        {"master": master, "replicas": 2, "offered_per_s": OFFERED_PER_S, "warm_up_s": warm_up_s, "seconds": seconds},
        expected_s,
    )


def _rescale(offered_per_s: float, warm_up: int, before_s: float, after_s: float, expected_s: float) -> Part:
    return Part(
        "rescale",
        f"2 replicas become 8 on each operator, at {offered_per_s:,.0f} tuples/s",
        {"offered_per_s": offered_per_s, "warm_up": warm_up, "before_s": before_s, "after_s": after_s},
        expected_s,
    )


def _restart(work: str, many: int, repeats: int, warm_up: int, expected_s: float) -> Part:
    # A micro-batch has a quarter of a second's tuples at the higher rate of the runs that rescale.
    return Part(
        "restart",
        f"a plain query stopped and restarted with {many} partitions for 2, {work}",
        {"work": work, "master": RESCALE_MASTER, "rows": 250, "many": many, "repeats": repeats, "warm_up": warm_up},
        expected_s,
    )


def _footprint(tuples: int, per_second: float, replicas: int, quiet_s: float, expected_s: float) -> Part:
    return Part(
        "footprint",
        f"disk and memory of {tuples:,} queued tuples that came at {per_second:,.0f}/s",
        {"tuples": tuples, "per_second": per_second, "replicas": replicas, "quiet_s": quiet_s},
        expected_s,
    )
