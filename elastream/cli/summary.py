"""The end of a run on the terminal: a table of the report."""

from typing import Any

from rich.console import Console
from rich.table import Table

from elastream.report.pages.words import letters_command, plural


def print_summary(report: dict[str, Any], console: Console) -> None:
    """The table, where every tuple is, and what there is to know besides."""
    events, latency, ticks = report["events"], report["latency_ms"], report["ticks"]
    letters = bool(report["new_dead_letters"])
    # With one column more, the table is still no wider than a terminal.
    table = Table(title=f"{report['name']}: {ticks['count']} ticks", padding=(0, 0) if letters else (0, 1))
    for column in (
        "operator",
        "processed",
        "dropped",
        *(["dead letters"] if letters else []),
        "late",
        "queued max",
        "end",
        "replicas mean",
        "max",
        "ms each",
    ):
        table.add_column(column, justify="left" if column == "operator" else "right", overflow="fold")
    for name, o in report["operators"].items():
        table.add_row(
            name,
            str(o["processed"]),
            str(o["dropped"]),
            *([str(o["dead_letters"])] if letters else []),
            str(o.get("late", 0)),
            str(o["queued_max"]),
            str(o["queued_end"]),
            f"{o['replicas_mean']:.2f}",
            str(o["replicas_max"]),
            f"{o['service_ms']:.3f}",
        )
    console.print(table)
    console.print(balance_line(events), highlight=False, soft_wrap=True)
    console.print(
        f"latency mean {latency['mean']:.0f} ms, p95 {latency['p95']:.0f}, p99 {latency['p99']:.0f}; "
        f"tick p50 {ticks['p50_ms']:.0f} ms, p95 {ticks['p95_ms']:.0f}, max {ticks['max_ms']:.0f}; "
        f"rescales {report['rescales']}, the longest tick that applied one {report['rescale_pause_ms']['max']:.0f} ms",
        highlight=False,
        soft_wrap=True,
    )
    if report["verdict"]:
        console.print(f"bottleneck: {report['verdict']}", highlight=False, soft_wrap=True)
    for name, rows in report["kept"].items():
        console.print(f"output {name}: {rows:,} rows are kept for its readers", highlight=False, soft_wrap=True)
    if usage := report["usage"]:
        console.print(
            f"CPU {usage['cpu_s']:.1f} s, {usage['cores']:.2f} cores in the mean; memory {usage['memory_mb']:.0f} MB at most",
            highlight=False,
            soft_wrap=True,
        )
    for words in report["warnings"]:
        console.print(f"warning: {words}", highlight=False, soft_wrap=True)
    if command := letters_command(report):
        said = plural(events["dead_letters"], "dead letter")
        console.print(f"{said}: {command} shows them, --retry serves them again", style="red", soft_wrap=True)


def balance_line(events: dict[str, int]) -> str:
    """What came in, and what became of it."""
    created = f" + created {events['created']:,}" if events["created"] else ""
    return (
        f"read {events['entered'] - events['created']:,}{created} = finished {events['finished']:,} + dropped {events['dropped']:,} "
        f"+ dead letters {events['dead_letters']:,} + queued {events['queued']:,}; duplicates {events['duplicates']:,}"
    )
