"""Which parts are measured, in which order, with which arguments: full or quick."""

from dataclasses import dataclass
from typing import Any

from elastream_lab.bench.common.watch import OPERATORS
from elastream_lab.bench.engine.rescale import MANY

JUDGED_LANES = 8
"""The number of lanes, in all four operators together, at which ticks and latency are judged."""

OFFERED_PER_S = 2_200_000
"""A little more than the goal of 1,000,000, so that a rate as good as the goal is not one that only kept up."""

FLOOR_MASTER = f"local[{JUDGED_LANES + 1},4]"
"""As many slots as the first edition gave a run with the judged number of lanes."""

RESCALE_MASTER = f"local[{MANY * len(OPERATORS) + 1},4]"
"""What the runs that rescale get."""


@dataclass(frozen=True)
class Part:
    """One process's worth of measuring."""

    name: str
    """As `elastream_lab.bench.common.parts` knows it."""
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
    return [
        [_ticks(4, 60, 3000, 45)],
        [_floor("strict", FLOOR_MASTER, 60, 150, 30)],
        [_ticks(JUDGED_LANES, 60, 3000, 45)],
        [_floor("strict", FLOOR_MASTER, 60, 150, 30)],
        [_ticks(16, 60, 3000, 47)],
        [_ticks(32, 60, 3000, 50)],
        [_floor("default", FLOOR_MASTER, 30, 80, 30)],
        [
            _throughput("20us", 40_000, 8, 10, 38),
            _throughput("empty", 4_000_000, 8, 8, 25),
            _sustained(8, 20, 32),
        ],
        [
            _plain("20us", cores, [30_000, 120_000], 3, 8, 50),
            _plain("20us in one function", cores, [60_000], 1, 8, 15),
            _plain("empty", cores, [200_000, 1_000_000], 2, 6, 22),
        ],
        [_throughput("20us", 40_000, 8, 10, 40)],
        [_rescale(300, 5, 20, 1.0, 42), _busy(2, 4, 10, 20), _busy(8, 4, 10, 20)],
        [_restart("empty", MANY, 2, 5, 40)],
        [_start()],
        [_start()],
        [_tweets(180, 215)],
        [_footprint(250_000, 40_000, 1, 5, 40), _footprint(20_000, 2000, 8, 3, 33)],
    ]


def _quick(cores: int) -> list[list[Part]]:
    """Two sessions, one with our settings and one with Spark's own: starting them takes most of the time."""
    return [
        [
            _start(),
            _floor("strict", RESCALE_MASTER, 8, 15, 13),
            _ticks(JUDGED_LANES, 8, 100, 12),
            _throughput("20us", 40_000, 1, 1.5, 7),
            _sustained(1, 2.5, 7),
            _rescale(300, 1, 3, 0.5, 10),
            _busy(2, 1, 2, 8),
            _footprint(20_000, 20_000, 1, 1, 12),
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


def _throughput(work: str, offered_per_s: float, warm_up_s: float, seconds: float, expected_s: float) -> Part:
    return Part(
        "throughput",
        f"Elastream's throughput, {work}",
        {"work": work, "replicas": 2, "offered_per_s": offered_per_s, "warm_up_s": warm_up_s, "seconds": seconds},
        expected_s,
    )


def _plain(work: str, cores: int, sizes: list[int], warm_up_s: float, seconds: float, expected_s: float) -> Part:
    return Part(
        "plain",
        f"a plain query's throughput, {work}",
        {"work": work, "cores": cores, "sizes": sizes, "warm_up_s": warm_up_s, "seconds": seconds},
        expected_s,
    )


def _sustained(warm_up_s: float, seconds: float, expected_s: float) -> Part:
    return Part(
        "sustained",
        f"{OFFERED_PER_S:,} tuples/s through four empty operators, to the last tuple",
        {"replicas": 2, "offered_per_s": OFFERED_PER_S, "warm_up_s": warm_up_s, "seconds": seconds},
        expected_s,
    )


def _rescale(offered_per_s: float, warm_up_s: float, rescales: int, every_s: float, expected_s: float) -> Part:
    return Part(
        "rescale",
        f"{rescales} rescales between 2 and 8 replicas on each operator, at {offered_per_s:,.0f} tuples/s",
        {"offered_per_s": offered_per_s, "warm_up_s": warm_up_s, "rescales": rescales, "every_s": every_s},
        expected_s,
    )


def _busy(replicas: int, warm_up_s: float, seconds: float, expected_s: float) -> Part:
    arguments = {"replicas": replicas, "warm_up_s": warm_up_s, "seconds": seconds}
    return Part("busy", f"the share of their time that {replicas} busy replicas serve", arguments, expected_s)


def _start() -> Part:
    return Part("start", "the start of a run, to the first tuple finished", {}, 14)


def _tweets(seconds: float, expected_s: float) -> Part:
    return Part("tweets", "tweets on a real trace, sized by PSPS", {"seconds": seconds}, expected_s)


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
