"""The live view: a table that is drawn anew a few times a second in a terminal, a line every few seconds elsewhere."""

import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live

from elastream.cli.status_view import status_line, view
from elastream.engine.handle import RunHandle
from elastream.engine.operations.snapshot import RunSnapshots
from elastream.engine.operations.status_document import Line, StatusDocument

LINE_EVERY_S = 5.0
REDRAW_S = 0.25


def watch(
    handle: RunHandle,
    console: Console,
    step: Callable[[float], bool],
    above: Callable[[float], RenderableType] | None = None,
    snapshots: RunSnapshots | None = None,
) -> None:
    """Show the run until it is over or `step(seconds since its first tick)` says no more.

    `above` gives, for those seconds, what a terminal shows over the table. `snapshots` listen to the run already.
    """
    if snapshots is None:
        snapshots = RunSnapshots()
        handle.listen(snapshots)
    while handle.active and not handle.observe().ticks and step(0.0):
        time.sleep(0.05)
    began = time.monotonic()

    def goes_on() -> bool:
        return handle.active and step(time.monotonic() - began)

    head = (lambda: [above(time.monotonic() - began)]) if above else None
    show(console, snapshots.take, goes_on, head)


def show(
    console: Console,
    take: Callable[[], StatusDocument],
    goes_on: Callable[[], bool],
    head: Callable[[], list[RenderableType]] | None = None,
) -> None:
    """Show documents as long as it goes on; in a terminal the last one stays."""
    if not console.is_terminal:
        _show_lines(console, take, goes_on)
        return
    with Live(console=console, auto_refresh=False) as live:
        while goes_on():
            live.update(Group(*(head() if head else ()), view(take(), legend=True)), refresh=True)
            time.sleep(REDRAW_S)
        live.update(Group(*(head() if head else ()), view(take())), refresh=True)


def _show_lines(console: Console, take: Callable[[], StatusDocument], goes_on: Callable[[], bool]) -> None:
    next_line, told = 0.0, Line(0.0, "", "")
    while goes_on():
        document = take()
        for line in document.lines:
            if line.at_s <= told.at_s:
                continue
            repeated, told = (line.kind, line.words) == (told.kind, told.words), line
            if not repeated:
                t_s = max(0.0, line.at_s - document.started_s)
                console.print(f"{t_s:.1f} s  {line.words}", highlight=False, soft_wrap=True)
        if time.monotonic() >= next_line:
            for words in document.overdue:
                console.print(words, highlight=False, soft_wrap=True)
            console.print(status_line(document), highlight=False, soft_wrap=True)
            next_line = time.monotonic() + LINE_EVERY_S
        time.sleep(REDRAW_S)
