"""The reference page of metrics: `python -m elastream.metrics.reference docs/reference/metrics.md` writes it."""

import sys
from pathlib import Path

from elastream.metrics.catalogue import SECTIONS, Metric

HEAD = """\
# Metrics

This page is made from `elastream/metrics/catalogue.py`; do not edit it:

    python -m elastream.metrics.reference docs/reference/metrics.md

Names and units follow Prometheus. Counters of tuples and of entries count since the base directory began and go on when a run is
started again; other counters begin with the run. In Python, `elastream.metrics` yields samples of a status, an observation and a
record.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [HEAD]
    for title, metrics in SECTIONS.items():
        rows = ["| metric | kind | unit | labels | meaning |", "| --- | --- | --- | --- | --- |", *map(_row, metrics)]
        parts.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(metric: Metric) -> str:
    labels = ", ".join(metric.labels)
    return f"| `{metric.name}` | {metric.kind.value} | {metric.unit} | {labels} | {metric.meaning} |"


def main(args: list[str]) -> int:
    if len(args) != 1:
        sys.stderr.write("usage: python -m elastream.metrics.reference FILE\n")
        return 2
    Path(args[0]).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
