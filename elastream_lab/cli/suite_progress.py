"""How far a suite is and how long it will still take: a bar in a terminal, a line for each scenario elsewhere."""

from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from elastream.cli.live import watch
from elastream.engine import Handle
from elastream.report import Record
from elastream_lab.bench.suites.runner import Progress
from elastream_lab.bench.suites.spark_plant import DRAIN_S, START_S


def watch_on(console: Console) -> Callable[[Handle, Record, Callable[[float], bool], Progress], None]:
    """What a plant calls to show a run of a suite."""

    def show(handle: Handle, record: Record, step: Callable[[float], bool], progress: Progress) -> None:
        if not console.is_terminal:
            console.print(f"{_place(progress)}; about {_time(progress.its_s + progress.left_s)} left")
        watch(handle, console, step, lambda elapsed: bar(progress, elapsed))

    return show


def bar(progress: Progress, elapsed_s: float) -> RenderableType:
    """All scenarios together. A run that drains longer than expected stands at its end."""
    its = min(progress.its_s, elapsed_s + START_S)
    done, total = progress.done_s + its, progress.done_s + progress.its_s + progress.left_s
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(no_wrap=True, justify="right")
    left = total - done if its < progress.its_s else min(DRAIN_S, progress.left_s + DRAIN_S) + progress.left_s
    row.add_row(_place(progress), ProgressBar(total=max(total, 1e-9), completed=done), f"about {_time(left)} left")
    return row


def _place(progress: Progress) -> str:
    return f"{progress.number} of {progress.of}: {progress.label}"


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
