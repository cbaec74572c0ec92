"""The live view: a table that is drawn anew a few times a second in a terminal, a line every few seconds elsewhere."""

import shlex
import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from elastream.cli.search_view import search_lines
from elastream.control import Observation, load_of
from elastream.control.load import LevelLoad, lane_ratios
from elastream.engine import Handle
from elastream.fleet import Level
from elastream.report import Record
from elastream.report.scores.containers import MANY_SEATS

LINE_EVERY_S = 5.0
REDRAW_S = 0.25
STYLES = {
    "warning": "yellow",
    "rescale": "cyan",
    "redirect": "magenta",
    "move": "blue",
    "fleet": "green",
    "alert": "bold red",
    "veto": "dim",
    "error": "red",
}
MOST_FAILURES = 3
"""Kinds of failures that the view shows, the newest."""


def watch(
    handle: Handle,
    record: Record,
    console: Console,
    step: Callable[[float], bool],
    above: Callable[[float], RenderableType] | None = None,
) -> None:
    """Show the run until it is over or `step(seconds since its first tick)` says no more.

    `above` gives, for those seconds, what a terminal shows over the table.
    """
    while handle.active and not handle.observe().ticks and step(0.0):
        time.sleep(0.05)
    began = time.monotonic()

    def goes_on() -> bool:
        return handle.active and step(time.monotonic() - began)

    if console.is_terminal:
        head = (lambda: [above(time.monotonic() - began)]) if above else list
        _show_table(handle, record, console, goes_on, head)
    else:
        _show_lines(handle, record, console, goes_on)


def _show_table(
    handle: Handle,
    record: Record,
    console: Console,
    goes_on: Callable[[], bool],
    head: Callable[[], list[RenderableType]],
) -> None:
    with Live(console=console, auto_refresh=False) as live:
        while goes_on():
            live.update(Group(*head(), view(handle.observe(2.0), record), *overdue(handle)), refresh=True)
            time.sleep(REDRAW_S)
        live.update(Group(*head(), view(handle.observe(2.0), record)), refresh=True)


def overdue(handle: Handle) -> list[Text]:
    """A line per work that takes long; other lanes do not wait for it."""
    return [Text(f"{work}", style="yellow", overflow="ellipsis", no_wrap=True) for work in handle.overdue()[:3]]


def _show_lines(handle: Handle, record: Record, console: Console, goes_on: Callable[[], bool]) -> None:
    next_line, told = 0.0, -1.0
    while goes_on():
        for t_s, kind, words in [remark for remark in list(record.remarks) if remark[0] > told]:
            told = t_s
            if kind != "veto":
                # What a guard refused it refuses again every interval; the report and the journal have all of it.
                console.print(f"{t_s:.1f} s  {words}", highlight=False, soft_wrap=True)
        if time.monotonic() >= next_line:
            for work in overdue(handle):
                console.print(work, highlight=False, soft_wrap=True)
            seen = handle.observe(LINE_EVERY_S)
            sizes = " ".join(f"{name}:{o.replicas}" for name, o in seen.operators.items() if name not in record.sources)
            console.print(
                f"tick {seen.tick}  in {_per_second(seen.entered, seen)}/s  out {_per_second(seen.finished, seen)}/s  "
                f"queued {seen.queued}  dropped {seen.dropped - seen.failed}  late {record.late.total()}  "
                f"dead letters {sum(record.dead_letters.values())}  "
                f"latency {seen.latency_mean_s:.3f} s  replicas {sizes}",
                highlight=False,
                soft_wrap=True,
            )
            next_line = time.monotonic() + LINE_EVERY_S
        time.sleep(0.1)


def view(seen: Observation, record: Record) -> RenderableType:
    """One observation as a table, the last changes of replicas below it."""
    tick_ms = seen.seconds / seen.ticks * 1e3 if seen.ticks else 0.0
    title = Text.assemble(
        (record.name, "bold"),
        f"   {record.policy}   tick {seen.tick} ({tick_ms:.0f} ms)   in {_per_second(seen.entered, seen)}/s   "
        f"out {_per_second(seen.finished, seen)}/s   queued {seen.queued}   dropped {seen.dropped - seen.failed}   "
        f"latency {seen.latency_mean_s * 1e3:.0f} ms, p95 {seen.latency_p95_s * 1e3:.0f} ms{_balance(seen)}",
    )
    letters = record.dead_letters
    if letters:
        title.append(f"   dead letters {sum(letters.values()):,}", "bold red")
    table = Table(expand=True, pad_edge=False)
    for column, where in (
        ("operator", "left"),
        ("replicas", "left"),
        ("queued", "right"),
        ("in/s", "right"),
        ("out/s", "right"),
        ("late", "right"),
        ("service ms", "right"),
        ("busy", "right"),
        ("load", "right"),
        ("lb", "right"),
        *([("dead letters", "right")] if letters else []),
    ):
        table.add_column(column, justify=where)  # type: ignore[arg-type]
    for name, operator in seen.operators.items():
        is_source = name in record.sources
        busy = operator.busy_seconds / (seen.seconds * operator.replicas) if seen.seconds else 0.0
        received = operator.processed if is_source else operator.received
        table.add_row(
            name,
            "" if is_source else f"{operator.replicas:>3} " + "█" * operator.replicas,
            "" if is_source else str(operator.queued),
            _per_second(received, seen),
            _per_second(operator.processed, seen),
            "" if is_source else str(record.late[name]),
            f"{operator.service_seconds * 1e3:.2f}",
            f"{min(busy, 1.0):.0%}",
            *_load(LevelLoad(tuple(lane_ratios(operator)))),
            *([f"{letters.get(name, 0):,}"] if letters else []),
        )
    if record.remarks:
        said = list(record.remarks)[-6:]
    else:
        said = [
            (r.t_s, "rescale", f"{r.operator}: {r.before} -> {r.after}  {r.reason}") for r in list(record.rescales)[-5:]
        ]
    lines = [
        Text(f"{t_s:6.1f} s  {words}", style=STYLES[kind], overflow="ellipsis", no_wrap=True)
        for t_s, kind, words in said
    ]
    searched = search_lines(record.searches[-1] if record.searches else None)
    return Group(title, table, *_failures(record), *searched, *lines)


def _failures(record: Record) -> list[Text]:
    """The newest kinds of failures, and how to look at all dead letters."""
    if not record.dead_letters:
        return []
    lines = [Text(words, style="red", overflow="ellipsis", no_wrap=True) for words in record.failures[-MOST_FAILURES:]]
    return [*lines, Text(f"elastream letters {shlex.quote(record.base)} shows the dead letters", style="red")]


def _balance(seen: Observation) -> str:
    """Of hosts and machines, where there are several."""
    load = load_of(seen)
    levels = {"hosts": load.hosts, "machines": load.machines}
    found = [f"{name} {level.lb:.2f}" for name, level in levels.items() if len(level.ratios) > 1]
    return (f"   lb of {', '.join(found)}" if found else "") + _fleet(seen)


def _fleet(seen: Observation) -> str:
    """Containers that are there, and of how many that are planned; seats only when somebody has decided about them."""
    found = [
        f"{state.level.value}s {state.there}{'' if state.there == state.planned else f' of {state.planned}'}"
        for state in seen.fleet
        if state.level is not Level.SEAT or state.planned < MANY_SEATS
    ]
    return f"   {', '.join(found)}" if found else ""


def _load(level: LevelLoad) -> tuple[str, str]:
    """How full the fullest queue is, and how uneven all are."""
    return (f"{level.most:.2f}", f"{level.lb:.2f}") if level.ratios else ("", "")


def _per_second(count: int, seen: Observation) -> str:
    return f"{count / seen.seconds:.0f}" if seen.seconds else "0"
