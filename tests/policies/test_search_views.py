"""The search of a policy: in the live view, in the report, and on its page."""

from io import StringIO
from typing import Any

import numpy as np
from pages import a_report, a_series, some_latencies
from rich.console import Console

from elastream.cli.search_view import search_lines
from elastream.report import Record, Sample
from elastream.report.latency import Latencies
from elastream.report.pages.charts import as_json
from elastream.report.pages.page import run_page
from elastream.report.pages.search import search_chart
from elastream.report.scores.end import end_of_run


def a_step(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "t_s": 10.0 * number,
        "operators": ("parse", "store"),
        "per_second": 200.0,
        "latency_ms": 300.0,
        "enough": 0.9,
        "base": (2, 3),
        "base_runs": 2,
        "number": number,
        "sizes": (2, 2 + number),
        "score": 0.5 + 0.1 * number,
        "measured_ms": 700.0 / number,
        "expected": None if number == 1 else 0.85,
        "deviation": None if number == 1 else 0.02,
        "best": (2, 2 + number),
        "best_score": 0.5 + 0.1 * number,
        "best_ms": 700.0 / number,
        "next": (2, 3 + number),
        "why": "<b>expected</b> improvement 0.1",
        "over": False,
    } | changes


STEPS = [a_step(1, measured_ms=None), a_step(2), a_step(3)]


def shown(step: dict[str, Any]) -> str:
    console = Console(width=140, record=True, color_system=None, file=StringIO())
    for line in search_lines(step):
        console.print(line)
    return console.export_text()


def test_the_live_view_tells_what_was_tried_expected_best_and_next() -> None:
    said = shown(STEPS[1])
    assert "2 tried; sizes of parse, store for 300 ms at 200/s; a score of 0.900 is enough" in said
    assert "(2, 4)  expected 0.850 ± 0.020, measured 0.700, latency 350 ms" in said
    assert "next   (2, 5)  <b>expected</b> improvement 0.1" in said
    assert "not predicted, measured 0.600, latency only grows" in shown(STEPS[0])
    assert search_lines(None) == []


def test_the_chart_has_a_point_per_configuration_measured_and_one_per_prediction() -> None:
    chart = search_chart(STEPS)
    assert chart is not None and search_chart([]) is None
    lines = {line["name"]: line for line in as_json(chart)["lines"]}
    assert lines["measured"]["y"] == [0.6, 0.7, 0.8] and lines["expected"]["x"] == [20.0, 30.0]
    assert lines["measured"]["words"] == ["(2, 3) only grows", "(2, 4) 350 ms", "(2, 5) 233 ms"]


def test_the_page_draws_a_search_and_lists_it_with_every_word_escaped() -> None:
    page = run_page(a_report() | {"searches": STEPS}, a_series(), some_latencies(), None)
    assert 'data-chart="search"' in page and "Configurations tried" in page
    assert "(2, 6): &lt;b&gt;expected&lt;/b&gt; improvement 0.1" in page and "0.850 ± 0.020" in page
    assert 'data-chart="search"' not in run_page(a_report(), a_series(), some_latencies(), None)


def test_the_end_of_a_run_is_its_last_tenth() -> None:
    record = Record("run", ("in",), pools={"work": 8})
    for second in range(1, 101):
        late = second > 90
        record.series.add("in", Sample(second, 1.0, 5, 5, 0, 0, 1, 0.0, entered=5))
        record.series.add("work", Sample(second, 1.0, 5, 5, 0, 0, 4 if late else 2, 0.1, finished=5))
        took = Latencies()
        took.add(np.full(5, 0.2 if late else 3.0))
        record.latency_line.add(float(second), took)
    end = end_of_run(record)
    assert end is not None and end["replicas"] == {"work": 4} and end["finished_per_s"] == 5.0
    assert 190 <= end["latency_ms"] <= 210
    assert end_of_run(Record("nothing", ())) is None
