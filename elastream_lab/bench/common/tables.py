"""Tables in Markdown: measured values enter, text leaves. Nothing is computed here but ratios to be shown."""

from collections.abc import Iterable, Sequence

from elastream_lab.bench.engine.busy import Busy
from elastream_lab.bench.engine.floor import Floor
from elastream_lab.bench.engine.footprint import Footprint
from elastream_lab.bench.engine.rescale import Rescale, Restart
from elastream_lab.bench.engine.throughput import Sustained, Throughput
from elastream_lab.bench.engine.ticks import PER_SECOND, TickTimes
from elastream_lab.bench.engine.tweets import TweetsRun

FLOOR_NAMES = {
    "strict": "settings of ticks, Spark's own source (goals are judged by this)",
    "python": "settings of ticks, a Python source",
    "default": "Spark's default settings",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, figures to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def number(value: float | None) -> str:
    """Three digits that matter, or all of a large number."""
    if value is None:
        return "not measured"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _per(value: float, floor_ms: float | None, digits: int) -> str:
    return f"{value / floor_ms:.{digits}f}" if floor_ms else "?"


def failures(found: tuple[str, ...]) -> str:
    """As they were said, for they name the part and the reason."""
    return "\n\n".join(["## Parts that failed", *(f"```\n{failure}\n```" for failure in found)]) if found else ""


def floors(found: tuple[Floor, ...], floor_ms: float | None) -> str:
    rows = [
        [FLOOR_NAMES[f.kind], number(f.p50_ms), number(f.p95_ms), number(f.between_p50_ms), str(f.batches)]
        for f in found
    ]
    return "\n\n".join(
        [
            "## An empty micro-batch",
            f"`durationMs.triggerExecution`, back to back after a warm-up. The floor is {number(floor_ms)} ms.",
            table(["", "p50 ms", "p95 ms", "end to end p50 ms", "batches"], rows),
        ]
    )


def ticks(found: tuple[TickTimes, ...], floor_ms: float | None) -> str:
    rows = [
        [
            str(t.lanes),
            number(t.p50_ms),
            _per(t.p50_ms, floor_ms, 2),
            number(t.p95_ms),
            number(t.max_ms),
            number(t.works_per_s),
            number(t.latency_mean_ms),
            _per(t.latency_mean_ms, floor_ms, 1),
            number(t.latency_p95_ms),
            str(t.missing),
        ]
        for t in sorted(found, key=lambda t: t.lanes)
    ]
    head = ["lanes", "p50 ms", "/ floor", "p95 ms", "max ms", "works/s", "latency ms", "/ floor", "p95 ms", "missing"]
    return "\n\n".join(
        [
            "## Ticks and four-hop latency",
            f"Four operators that do nothing, {PER_SECOND:,} tuples/s; a tick is the time between two commits. Lanes with "
            "little to do share a work. Latency: from the time a tuple was due to the end of the fourth operator, mean.",
            table(head, rows),
        ]
    )


def throughput(found: tuple[Throughput, ...]) -> str:
    rows = [
        [f"{t.work}: {t.system}, {t.config}", number(t.per_second), f"{t.seconds:.0f}", str(t.missing)]
        for t in sorted(found, key=lambda t: (t.work, t.system))
    ]
    tried = [f"{t.work}, {config}: {number(rate)}/s" for t in found for config, rate in t.tried]
    also = "Other sizes tried for the plain query: " + "; ".join(tried) + "." if tried else ""
    return "\n\n".join(
        part
        for part in [
            "## Throughput through four operators",
            "Elastream is offered more than it can serve. The plain query reads `rate-micro-batch` through four `mapInArrow`, "
            "with Spark's default settings.",
            table(["work in each operator", "tuples/s", "measured s", "missing"], rows),
            also,
        ]
        if part
    )


def sustained(found: Sustained) -> str:
    rows = [
        ["offered tuples/s", number(found.offered_per_s)],
        ["for s, after a warm-up", number(found.seconds)],
        ["finished tuples/s", number(found.finished_per_s)],
        ["latency mean ms", number(found.latency_mean_ms)],
        ["latency p95 ms", number(found.latency_p95_ms)],
        ["queued when the offer ended", number(found.queued_at_end)],
        ["all served after, s", number(found.drained_s)],
        ["entered", f"{found.entered:,}"],
        ["finished", f"{found.finished:,}"],
        ["dropped", f"{found.dropped:,}"],
        ["missing", f"{found.missing:,}"],
        ["problems in the audit", str(found.problems)],
    ]
    return "\n\n".join(["## A high rate to the last tuple", table(["", ""], rows)])


def rescales(found: tuple[Rescale, ...], restarts: tuple[Restart, ...]) -> str:
    ours = [
        [
            number(r.offered_per_s),
            str(r.rescales),
            number(r.usual_ms),
            number(r.typical_ms),
            number(r.longest_ms),
            number(r.beyond_ms),
            str(r.missing),
        ]
        for r in found
    ]
    theirs = [
        [
            r.work,
            str(r.rows),
            number(r.batch_ms),
            f"2 → {r.partitions}",
            ", ".join(number(ms) for ms in r.first_ms),
            ", ".join(number(ms) for ms in r.again_ms),
        ]
        for r in restarts
    ]
    head = [
        "tuples/s",
        "rescales",
        "longest without one",
        "around one, median",
        "longest",
        "beyond the usual",
        "missing",
    ]
    return "\n\n".join(
        [
            "## Two replicas become eight, on each of four operators, and two again",
            "Every tuple waits 2 ms in each operator. Times without output in ms: the longest while nothing was rescaled, and those "
            "that overlap half a second after a rescale.",
            table(head, ours),
            "The plain query, stopped and started again with more partitions: ms from `stop()` to the end of the first "
            "micro-batch. The first time in a session it needs new workers, the second time it finds them.",
            table(["work", "tuples a batch", "batch ms", "partitions", "first time ms", "second time ms"], theirs),
        ]
    )


def busy(found: tuple[Busy, ...]) -> str:
    rows = [
        [
            str(b.replicas),
            f"{b.share:.3f}",
            number(b.works_per_s),
            number(b.turns_per_s),
            number(b.turn_ms),
            number(b.cpu_ms_per_1000),
        ]
        for b in found
    ]
    head = ["replicas", "share served", "works/s", "turns/s", "CPU ms per turn", "CPU ms per 1,000 tuples"]
    return "\n\n".join(
        [
            "## A busy replica",
            "One operator that waits 2 ms per tuple and is offered more than it can serve.",
            table(head, rows),
        ]
    )


def tweets(found: TweetsRun) -> str:
    rows = [
        ["played for s", number(found.seconds)],
        ["latency mean ms", number(found.latency_mean_ms)],
        ["latency p95 ms", number(found.latency_p95_ms)],
        ["saved resources", f"{found.saved:.3f}"],
        ["throughput degradation", f"{found.degradation:.3f}"],
        ["processed", f"{found.processed:.4f}"],
        ["CPU seconds of all processes", number(found.cpu_s)],
        ["rescales", str(found.rescales)],
        ["missing, doubled", f"{found.missing}, {found.doubled}"],
    ]
    return "\n\n".join(["## Tweets on a real trace, sized by PSPS", table(["", ""], rows)])


def footprints(found: tuple[Footprint, ...]) -> str:
    rows = [
        [
            f"{f.per_second:,.0f}/s into {f.lanes} lanes",
            f"{f.queued:,}",
            f"{f.slices:,}",
            f"{f.payload_bytes / f.queued:.1f}",
            f"{f.segment_bytes / f.queued:.1f}",
            f"{f.ledger_bytes / f.queued:.1f}",
            f"{f.driver_bytes / f.queued:.1f}",
        ]
        for f in found
    ]
    head = ["backlog", "tuples", "slices", "Arrow", "segments", "ledger", "driver memory"]
    return "\n\n".join(
        [
            "## What a queued tuple costs",
            "Bytes a tuple, of an id and a due time. Segments and ledger are on disk; memory is how much the driver grew.",
            table(head, rows),
        ]
    )
