"""A status document on a terminal: one table, a verdict above it, the newest events below."""

import math
import shlex
from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from elastream.cli.search_view import search_lines
from elastream.engine.operations.status_document import OperatorRow, StatusDocument
from elastream.fleet import Level
from elastream.report.pages.words import clock
from elastream.report.scores.containers import MANY_SEATS

STYLES = {
    "warning": "yellow",
    "rescale": "cyan",
    "redirect": "magenta",
    "move": "blue",
    "fleet": "green",
    "alert": "bold red",
    "request": "bold",
    "error": "red",
}
BAR = 5
"""Blocks that stand for all replicas an operator may have."""

MAX_LINES = 6
MAX_FAILURES = 3
MAX_VETOES = 2

SATURATED = 0.95
"""An operator that is busier than this is shown in red."""

LEGEND = (
    "queued: waiting (of a source: not read yet; of an output: kept for readers)   wait: estimated time in the queue   "
    "busy: share of its replicas' time, 100% if tuples wait 1 s or longer   load: the fullest lane, 1 is full"
)


def view(document: StatusDocument, *, legend: bool = False) -> RenderableType:
    """The run at one moment."""
    parts: list[RenderableType] = [_title(document), _verdict(document), _table(document)]
    if legend:
        parts.append(Text(LEGEND, style="dim"))
    parts += [_line(words, "yellow") for words in document.overdue]
    parts += [_lag(row) for row in document.operators if row.role == "source" and any(row.lag.values())]
    parts += [_watermark(row) for row in document.operators if row.watermark_s is not None]
    parts += _failures(document)
    parts += search_lines(document.search)
    parts += [_line(f"held back  {words}", "dim") for words in document.vetoes[:MAX_VETOES]]
    parts += [
        _line(f"{clock(max(0.0, line.at_s - document.started_s)):>9}  {line.words}", STYLES.get(line.kind, ""))
        for line in document.lines[-MAX_LINES:]
    ]
    return Group(*parts)


def status_line(document: StatusDocument) -> str:
    """The run in one line, where there is no terminal."""
    sizes = " ".join(f"{row.name}:{row.replicas}" for row in document.operators if row.role != "source")
    return (
        f"tick {document.entry}  in {document.in_per_s:.0f}/s  out {document.out_per_s:.0f}/s  queued {document.queued}  "
        f"dropped {document.dropped}  late {document.late}  dead letters {document.dead_letters}  "
        f"latency {document.latency_mean_s:.3f} s  replicas {sizes}  {document.verdict}"
    )


def _title(document: StatusDocument) -> Text:
    title = Text.assemble(
        (document.name, "bold"),
        f"   {document.policy}   {document.phase}   tick {document.entry} ({document.tick_ms:.0f} ms)   "
        f"in {document.in_per_s:.0f}/s   out {document.out_per_s:.0f}/s   queued {document.queued:,}   "
        f"dropped {document.dropped:,}   "
        f"latency {document.latency_mean_s * 1e3:.0f} ms, p95 {document.latency_p95_s * 1e3:.0f} ms{_levels(document)}",
    )
    if document.dead_letters:
        title.append(f"   dead letters {document.dead_letters:,}", "bold red")
    return title


def _verdict(document: StatusDocument) -> Text:
    bad = "bottleneck" in document.verdict or "falls behind" in document.verdict
    return Text(document.verdict or document.stage or document.phase, style="bold red" if bad else "green")


def _table(document: StatusDocument) -> Table:
    letters = bool(document.dead_letters)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, expand=False)
    table.add_column("operator", no_wrap=True, min_width=8, max_width=24)
    table.add_column("replicas", no_wrap=True, min_width=8)
    for column in ("queued", "in/s", "out/s", "wait", "service", "busy", "load", "late"):
        table.add_column(column, justify="right", no_wrap=True)
    if letters:
        table.add_column("dead letters", justify="right")
    for row in document.operators:
        plain = row.role == "operator"
        cells = [
            row.name,
            _replicas(row) if plain else "",
            _queued(row),
            f"{row.in_per_s:.0f}",
            f"{row.out_per_s:.0f}" if row.role != "output" else "",
            _time(row.wait_s) if plain else "",
            _time(row.service_s) if row.role != "output" else "",
            f"{row.busy:.0%}" if plain else "",
            f"{row.load:.2f}" if row.load is not None else "",
            "" if row.role == "source" else f"{row.late:,}",
        ]
        if letters:
            cells.append(f"{row.dead_letters:,}")
        table.add_row(*cells, style="red" if plain and row.busy >= SATURATED else "")
    return table


def _replicas(row: OperatorRow) -> str:
    return f"{row.replicas:>2} of {row.max} " + "█" * math.ceil(BAR * row.replicas / max(row.max, 1))


def _queued(row: OperatorRow) -> str:
    if row.role == "chained":
        return ""
    words = {"source": " unread", "output": " kept"}.get(row.role, "")
    return f"{row.queued:,}{words}" if row.queued or not words else "0"


def _lag(row: OperatorRow) -> Text:
    parts = ", ".join(f"{part}: {unread:,}" for part, unread in list(row.lag.items())[:MAX_LINES] if unread)
    return _line(f"lag of {row.name} by partition  {parts}", "yellow")


def _watermark(row: OperatorRow) -> Text:
    at = datetime.fromtimestamp(row.watermark_s or 0.0, UTC)
    return _line(f"watermark of {row.name}  {at:%Y-%m-%d %H:%M:%S} UTC, {row.late:,} rows were late", "dim")


def _failures(document: StatusDocument) -> list[Text]:
    """The newest kinds of failures, and how to look at all dead letters."""
    if not document.dead_letters:
        return []
    lines = [_line(words, "red") for words in document.failures[-MAX_FAILURES:]]
    return [*lines, Text(f"elastream letters {shlex.quote(document.base)} shows the dead letters", style="red")]


def _levels(document: StatusDocument) -> str:
    """Containers that are there, of those planned; seats only if somebody has decided about them."""
    words = [
        f"{row.level}s {row.there}{'' if row.there == row.planned else f' of {row.planned}'}"
        for row in document.levels
        if row.level != Level.SEAT.value or row.planned < MANY_SEATS
    ]
    return f"   {', '.join(words)}" if words else ""


def _time(seconds: float) -> str:
    """In three digits or so: 0.14 ms, 22 ms, 8.8 s."""
    if seconds < 1.0:
        ms = seconds * 1e3
        return f"{ms:.2f} ms" if 0 < ms < 10 else f"{ms:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"


def _line(words: str, style: str) -> Text:
    return Text(words, style=style, overflow="ellipsis", no_wrap=True)
