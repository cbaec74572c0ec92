"""The end of a run on the terminal: a table of the report."""

from typing import Any

from rich.console import Console
from rich.table import Table


def print_summary(report: dict[str, Any], console: Console) -> None:
    events, latency, ticks = report["events"], report["latency_ms"], report["ticks"]
    table = Table(title=f"{report['name']}: {ticks['count']} ticks")
    for column in (
        "operator",
        "processed",
        "dropped",
        "queued max",
        "end",
        "replicas mean",
        "max",
        "ms each",
    ):
        table.add_column(column, justify="left" if column == "operator" else "right")
    for name, o in report["operators"].items():
        table.add_row(
            name,
            str(o["processed"]),
            str(o["dropped"]),
            str(o["queued_max"]),
            str(o["queued_end"]),
            f"{o['replicas_mean']:.2f}",
            str(o["replicas_max"]),
            f"{o['service_ms']:.3f}",
        )
    console.print(table)
    console.print(
        f"entered {events['entered']} = finished {events['finished']} + dropped {events['dropped']} + queued {events['queued']}; "
        f"duplicates {events['duplicates']}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"latency mean {latency['mean']:.0f} ms, p95 {latency['p95']:.0f}, p99 {latency['p99']:.0f}; "
        f"tick p50 {ticks['p50_ms']:.0f} ms, p95 {ticks['p95_ms']:.0f}, max {ticks['max_ms']:.0f}; "
        f"rescales {report['rescales']}, the longest tick that applied one {report['rescale_pause_ms']['max']:.0f} ms",
        highlight=False,
        soft_wrap=True,
    )
    if usage := report["usage"]:
        console.print(
            f"CPU {usage['cpu_s']:.1f} s, {usage['cores']:.2f} cores in the mean; memory {usage['memory_mb']:.0f} MB at most",
            highlight=False,
            soft_wrap=True,
        )
    for words in report["warnings"]:
        console.print(f"warning: {words}", highlight=False, soft_wrap=True)
