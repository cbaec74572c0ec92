"""Aggregators and assembler of the application `ddos`: flows enter; a vector of features per window of event time leaves.

An aggregator counts the flows of every value of one column, such as every source, in windows. When the watermark has passed a window
it gives one row per value. The assembler is keyed by window and puts together what all aggregators gave of it; it is woken when
its watermark has passed the time of these rows, and that waits for the slowest aggregator.
"""

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from elastream.topology import parse_schema
from elastream.topology.windows import Row, Windows, windows_of
from elastream_lab.apps.ddos.features import DIMENSIONS, SPREAD, TOTALS, feature_rows
from elastream_lab.apps.ddos.parsing import FLOW

COUNTED = parse_schema(
    "by string, value string, window_start timestamp, counted_at timestamp, flows long, packets long, bytes long, "
    "gap_ms double, label string"
)
"""What an aggregator knows of one value in one window."""
VECTOR = parse_schema("window_start timestamp, flows long, features array<double>, label string, target string")
GATHERED = parse_schema(
    ", ".join(f"{dimension} array<double>" for dimension in DIMENSIONS)
    + ", totals array<double>, label string, target string, target_flows long"
)
"""What the assembler knows of one window; arrays as `SPREAD` and `TOTALS`."""

AFTER = dt.timedelta(milliseconds=1)
"""Rows are dated this long after their window's end: a watermark of the end itself may come before the last of them."""


@dataclass(frozen=True)
class Aggregator:
    """Counts flows by one column, in windows that follow one another."""

    by: str
    windows: Windows

    def add(self, key: Any, rows: list[Row], state: Any) -> list[Row]:
        return self.windows.add(key, rows, state)

    def close(self, key: Any, at_s: float, state: Any) -> Iterator[Row]:
        for row in self.windows.close(key, at_s, state):
            yield {
                "by": self.by,
                "value": row.pop(self.by),
                "counted_at": row.pop("window_end") + AFTER,
                **row,
            }


def aggregator(by: str, window_s: int) -> Aggregator:
    counts = {"flows": "count()", **{name: f"sum({name})" for name in TOTALS[1:]}, "label": "max(label)"}
    windows = windows_of(
        f"by-{by}", (by,), "at", FLOW, every_s=float(window_s), length_s=None, session_s=None, aggregate=counts
    )
    return Aggregator(by, windows)


def gather(window_start: dt.datetime, rows: list[Row], state: Any) -> list[Row]:
    """Rows of all aggregators about one window are added to what is known of it."""
    known = {name: getattr(state, name) or [0.0] * len(SPREAD) for name in DIMENSIONS}
    totals = state.totals or [0.0] * len(TOTALS)
    for row in rows:
        flows = row["flows"]
        keys, all_flows, n_log_n, most = known[row["by"]]
        known[row["by"]] = [keys + 1, all_flows + flows, n_log_n + flows * math.log(flows), max(most, flows)]
        if row["by"] == "destination":
            # Every flow has one destination, so these are all flows.
            totals = [total + row[name] for total, name in zip(totals, TOTALS, strict=True)]
            state.label = max(state.label or "", row["label"])
            if (flows, row["value"]) > (state.target_flows or 0, state.target or ""):
                state.target, state.target_flows = row["value"], flows
    for name in DIMENSIONS:
        setattr(state, name, known[name])
    state.totals = totals
    state.wake_at_event(max(row["counted_at"] for row in rows))
    return []


def assemble(window_start: dt.datetime, at_s: float, state: Any) -> Iterator[Row]:
    """The window is complete: its vector leaves, and it is forgotten."""
    spreads = {name: np.array([getattr(state, name)]) for name in DIMENSIONS}
    totals = np.array([state.totals])
    yield {
        "window_start": window_start,
        "flows": int(state.totals[0]),
        "features": feature_rows(totals, spreads)[0].tolist(),
        "label": state.label,
        "target": state.target,
    }
    state.remove()
