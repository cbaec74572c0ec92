"""Runs and suites for the pages, and what a browser sees of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from browser import Browser
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from elastream.report import Sample, Series
from elastream.report.latency import LatencyPoint
from elastream.report.pages.page import run_page
from elastream.report.scores.adaptability import Curve
from elastream_lab.bench.suites.suite_page import SuiteRun, suite_page


def a_series(names: tuple[str, ...] = ("in", "parse", "store"), ticks: int = 80, seconds: float = 0.5) -> Series:
    """A spike in the middle; the second operator falls behind, the third does not. The first name is the source."""
    series = Series()
    source, *served = names
    for n in range(1, ticks + 1):
        busy = ticks // 4 < n <= ticks // 2
        came, t_s = (300 if busy else 50), n * seconds
        series.add(source, Sample(t_s, seconds, came, came, 0, 0, 1, 0.1, entered=came))
        for position, name in enumerate(served):
            queued = (n - ticks // 4) * 20 * (len(served) - position) if busy else 5
            last = name == served[-1]
            series.add(
                name,
                Sample(t_s, seconds, came, came, 0, queued, 4 if busy else 1, 0.1, finished=came - 5 if last else 0),
            )
    return series


def a_report(
    names: tuple[str, ...] = ("in", "parse", "store"), decisions: int = 4, every_s: float = 5.0
) -> dict[str, Any]:
    source, *served = names
    return {
        "name": "pages",
        "policy": "psps",
        "sources": [source],
        "pools": dict.fromkeys(served, 8),
        "r_over": 12,
        "events": {"entered": 9000, "finished": 9000, "dropped": 0, "queued": 0, "duplicates": 0},
        "latency_ms": {"mean": 812.0, "p50": 640.0, "p95": 1900.0, "p99": 2400.0, "max": 3000.0},
        "ticks": {"count": 80, "p50_ms": 500.0, "p95_ms": 510.0, "max_ms": 620.0},
        "saved_resources": 0.57,
        "throughput_degradation": 0.12,
        "processed_ratio": 1.0,
        "replica_seconds": 400.0,
        "rescales": decisions,
        "rescale_pause_ms": {"p50": 520.0, "max": 620.0},
        "operators": {name: {"received": 9000, "processed": 9000, "queued_max": 400} for name in names},
        "health": dict.fromkeys(served, 0.97),
        "load": {"ratio_mean": 0.6, "ratio_max": 1.1, "lb_mean": 0.1, "lb_max": 0.3},
        "correlations": {"queue_latency": {"pearson": 0.9, "spearman": None}},
        "decisions": [
            {
                "t_s": every_s * (n + 1),
                "operator": served[n % len(served)],
                "before": 1 + 3 * (n % 2),
                "after": 4 - 3 * (n % 2),
                "reason": f"reason {n}: because {served[n % len(served)]} has to",
            }
            for n in range(decisions)
        ],
        "remarks": [
            {"t_s": 12.5, "kind": "veto", "words": "store: 1 -> 1  cooldown: changed 2 s ago"},
            {"t_s": 13.0, "kind": "rescale", "words": "not to be told twice"},
        ],
        "ai_sps": {"index": 6.48, "k_s": 0.98, "tau_s": 2.4, "phi": 15, "reason": "", "spikes": [a_spike()]},
    }


def a_spike() -> dict[str, Any]:
    return {
        "onset_s": 10.0,
        "end_s": 20.0,
        "first_level": 0.9,
        "minimum_s": 15.0,
        "minimum_level": 0.1,
        "stable_s": 17.4,
        "stable_level": 0.88,
        "k_s": 0.98,
        "tau_s": 2.4,
        "index": 6.48,
        "settled": True,
    }


def some_latencies(until_s: float = 40.0) -> list[LatencyPoint]:
    return [LatencyPoint(float(t), 50, 0.5 + t / 100, 0.4, 1.5, 2.0) for t in range(1, int(until_s) + 1)]


def a_curve() -> Curve:
    t = np.arange(0.1, 40.0, 0.1)
    return Curve(t, np.where((t > 10) & (t < 20), 300.0, 50.0), 0.5 + 0.4 * np.cos(t / 5))


def a_run_page() -> str:
    return run_page(a_report(), a_series(), some_latencies(), a_curve())


def a_suite_page() -> str:
    runs = [
        SuiteRun("psps", a_report(), a_series(), some_latencies(), link="psps/report.html"),
        SuiteRun("r = 1", a_report(decisions=0), a_series(ticks=40), link="r - 1/report.html"),
        SuiteRun("<i>r</i>", {"events": {}}, Series()),
    ]
    rows = [["psps", "0.57", "1,200"], ["r = 1", "0.80", "900"], ["<i>r</i>", "0.00", "15,000"]]
    return suite_page(
        "A suite", "Three runs.", ["", "saved", "p95 ms"], rows, runs, better={"saved": "high", "p95 ms": "low"}
    )


def one(chrome: Browser, selector: str) -> WebElement:
    return chrome.driver.find_element(By.CSS_SELECTOR, selector)


def texts(chrome: Browser, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    shown: list[str] = chrome.run(script, selector)
    return shown


def lines(chrome: Browser, chart: str) -> list[str]:
    script = (
        "return [...document.querySelectorAll(`[data-chart=${arguments[0]}] [data-line]`)].map((e) => e.dataset.line)"
    )
    drawn: list[str] = chrome.run(script, chart)
    return drawn


def wait(chrome: Browser, is_so: Callable[[], bool]) -> None:
    WebDriverWait(chrome.driver, 5, poll_frequency=0.02).until(lambda _: is_so())


def tip(chrome: Browser, chart: str) -> str:
    """Empty while it is hidden."""
    return one(chrome, f"[data-chart={chart}] .tip").text
