"""The pages in a real browser: what is on them, what happens at a touch, and that nothing else happens."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, NoBrowser, browser
from pages import a_curve, a_report, a_run_page, a_series, a_suite_page, lines, one, some_latencies, texts, tip, wait
from parts import skip_or_fail
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from elastream.report import Sample, Series
from elastream.report.pages.page import run_page

HOSTILE = (
    "</script><script>window.owned=1</script>",
    "\"'><img src=x onerror=window.owned=1>",
    "é 日本 🚀 \u2028 & <b>",
)
PHONE = {"width": 360, "height": 740, "phone": True}


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    try:
        with browser() as running:
            yield running
    except NoBrowser as reason:
        skip_or_fail(str(reason))


@pytest.fixture(autouse=True)
def nothing_else_happens(chrome: Browser) -> Iterator[None]:
    """Whatever a test does: no error on the console, and nobody is asked for anything but the page."""
    yield
    assert chrome.errors() == []
    assert [url for url in chrome.requests() if not url.startswith(("file:///", "data:"))] == []
    assert chrome.run("return performance.getEntriesByType('resource').length") == 0


@pytest.fixture
def shows(chrome: Browser, tmp_path: Path) -> Callable[..., Browser]:
    def show(page: str, **how: Any) -> Browser:
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        chrome.open(tmp_path / "page.html", **how)
        return chrome

    return show


Shows = Callable[..., Browser]


# What is on the page


def test_a_run_is_told_in_charts_cards_and_tables(shows: Shows) -> None:
    chrome = shows(a_run_page())
    assert texts(chrome, "h1") == ["pages"]
    assert texts(chrome, ".verdict")[0].startswith(
        "9,000 tuples read, all finished; nothing dropped; replicas followed"
    )
    assert texts(chrome, ".card b") == ["57\u00a0%", "12\u00a0%", "812\u00a0ms", "100\u00a0%", "4", "6.48"]
    assert "adapts well" in one(chrome, ".card.good").text
    assert lines(chrome, "rates") == ["input", "finished"]
    assert lines(chrome, "queued") == lines(chrome, "replicas") == ["parse", "store"]
    assert lines(chrome, "latency") == ["mean", "p50", "p95", "p99"]
    assert len(lines(chrome, "recovery-1")) == 5 and "τ 2.40\u00a0s" in texts(chrome, ".bracket text")
    assert "Kₛ 0.98 · τ 2.40\u00a0s · index 6.48" in texts(chrome, "[data-chart=recovery-1] figcaption p")
    assert len(texts(chrome, ".mark")) == len(texts(chrome, "#decisions tbody tr")) == 4
    assert texts(chrome, "#remarks td:last-child") == ["store: 1 -> 1  cooldown: changed 2 s ago"]
    assert texts(chrome, "section .sortable tbody th") == ["in source", "parse", "store"]
    assert "0.90 Pearson · – Spearman" in texts(chrome, "dd")


def test_charts_of_the_same_time_have_the_same_axis(shows: Shows) -> None:
    chrome = shows(a_run_page())
    axes = [texts(chrome, f"[data-chart={name}] .axis .x") for name in ("rates", "queued", "replicas", "latency")]
    assert axes[0] == ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s", "35 s", "40 s"]
    assert axes.count(axes[0]) == 4
    assert texts(chrome, "[data-chart=queued] .axis .y") == ["0", "200", "400", "600", "800"]
    assert texts(chrome, "[data-chart=replicas] .axis .y") == ["0", "1", "2", "3", "4"]
    assert texts(chrome, "[data-chart=latency] .axis .y") == ["0", "500 ms", "1 s", "1.5 s", "2 s"]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("ticks(537, 5, true)", [0, 200, 400]),
        ("ticks(1, 5, true)", [0, 1]),
        ("ticks(0.0021, 4, false)", [0, 0.001, 0.002]),
        ("ticks(3e6, 3, false)", [0, 1e6, 2e6, 3e6]),
        ("timeTicks(0, 46, 5)", [0, 10, 20, 30, 40]),
        ("timeTicks(12, 3700, 5)", [900, 1800, 2700, 3600]),
        ("timeTicks(0, 0.4, 4)", [0, 0.1, 0.2, 0.3, 0.4]),
        ("timeTicks(0, 864000, 5)", [0, 172800, 345600, 518400, 691200, 864000]),
        ("logTicks(1500, 'tuples')", [0, 1, 10, 100, 1000]),
        ("logTicks(0.3, 'seconds')", [0, 0.01, 0.02, 0.05, 0.1, 0.2]),
        ("[0, 1, 2.4, 2.6, 9].map((t) => indexAt([0, 2, 3], t, false))", [0, 0, 1, 2, 2]),
        ("[0, 1, 2.4, 2.6, 9].map((t) => indexAt([0, 2, 3], t, true))", [0, 0, 1, 1, 2]),
        ("[0, 950, 1234, 2.5e6].map(compact)", ["0", "950", "1.23k", "2.5M"]),
        ("[0.0004, 0.25, 1.791, 46].map(lasting)", ["0.4 ms", "250 ms", "1.79 s", "46 s"]),
        (
            "[clock(30, 90), clock(30, 600), clock(3725, 9000), clock(2.25, 9, true)]",
            ["30 s", "0:30", "1:02:05", "2.3 s"],
        ),
        ("['1,234 ms', '<0.01 %', '-3e2', 'none'].map(numberIn)", [1234, 0.01, -300, None]),
    ],
)
def test_axes_have_round_numbers(chrome: Browser, call: str, result: list[Any]) -> None:
    web = Path(run_page.__code__.co_filename).with_name("web")
    script = "".join((web / name).read_text(encoding="utf-8") for name in ("format.js", "scales.js", "tables.js"))
    assert chrome.run(f"{script}\nreturn {call}") == result


# What happens at a touch


def test_pointing_at_a_decision_tells_its_reason(shows: Shows) -> None:
    chrome = shows(a_run_page())
    mark = chrome.driver.find_elements(By.CSS_SELECTOR, ".mark")[1]
    ActionChains(chrome.driver).move_to_element(mark).perform()
    wait(chrome, lambda: "reason 1: because store has to" in tip(chrome, "replicas"))
    assert "store 4 → 1" in tip(chrome, "replicas") and "10.0 s" in tip(chrome, "replicas")
    # The other charts show the same moment.
    assert "10.0 s" in tip(chrome, "queued")
    ActionChains(chrome.driver).move_to_element(one(chrome, "h1")).perform()
    wait(chrome, lambda: tip(chrome, "replicas") == "")


def test_decisions_are_reached_with_the_keyboard(shows: Shows) -> None:
    chrome = shows(a_run_page())
    assert chrome.run("return document.querySelectorAll('.mark[tabindex=\"0\"]').length") == 1
    chrome.run("document.querySelector('.mark').focus()")
    wait(chrome, lambda: "reason 0" in tip(chrome, "replicas"))

    def is_shown(reason: str) -> bool:
        return reason in tip(chrome, "replicas")

    for key, reason in ((Keys.ARROW_RIGHT, "reason 1"), (Keys.END, "reason 3"), (Keys.ARROW_LEFT, "reason 2")):
        chrome.driver.switch_to.active_element.send_keys(key)
        wait(chrome, partial(is_shown, reason))
    said = chrome.driver.switch_to.active_element.get_attribute("aria-label")
    assert said == "15.0 s, parse: 1 to 4, reason 2: because parse has to"
    chrome.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait(chrome, lambda: tip(chrome, "replicas") == "")


def test_a_finger_does_what_a_mouse_does(shows: Shows) -> None:
    chrome = shows(a_run_page(), **PHONE)
    chrome.run("document.querySelector('[data-chart=replicas]').scrollIntoView()")
    box = chrome.run("return document.querySelectorAll('.mark')[2].getBoundingClientRect().toJSON()")
    chrome.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    wait(chrome, lambda: "reason 2" in tip(chrome, "replicas"))
    plot = chrome.run(
        "return document.querySelector('[data-chart=replicas] svg:not(.key)').getBoundingClientRect().toJSON()"
    )
    chrome.tap(plot["x"] + plot["width"] / 2, plot["y"] + 40)
    wait(chrome, lambda: "parse" in tip(chrome, "replicas") and "reason" not in tip(chrome, "replicas"))


def test_the_crosshair_is_at_the_same_time_in_all_charts(shows: Shows) -> None:
    chrome = shows(a_run_page())
    plot = one(chrome, "[data-chart=queued] .plot")
    ActionChains(chrome.driver).move_to_element(plot).perform()
    wait(chrome, lambda: "parse" in tip(chrome, "queued"))
    first = {name: tip(chrome, name).splitlines()[0] for name in ("rates", "queued", "replicas", "latency")}
    assert len(set(first.values())) == 1 and first["rates"].endswith(" s")
    xs = chrome.run(
        "return [...document.querySelectorAll('.cursor line')].slice(0, 4).map((line) => line.getAttribute('x1'))"
    )
    assert len(xs) == 4 and len(set(xs)) == 1
    # With the keys it goes on from there.
    plot.send_keys(Keys.ARROW_RIGHT)
    wait(chrome, lambda: tip(chrome, "rates").splitlines()[0] != first["rates"])


def test_a_legend_hides_and_shows_lines(shows: Shows) -> None:
    chrome = shows(a_run_page())
    parse, store = chrome.driver.find_elements(By.CSS_SELECTOR, "[data-chart=queued] .legend button")
    parse.click()
    assert lines(chrome, "queued") == ["store"] and parse.get_attribute("aria-pressed") == "false"
    # What is left uses the room.
    assert texts(chrome, "[data-chart=queued] .axis .y") == ["0", "100", "200", "300", "400"]
    parse.click()
    assert lines(chrome, "queued") == ["parse", "store"]
    ActionChains(chrome.driver).double_click(store).perform()
    assert lines(chrome, "queued") == ["store"]
    store.click()
    assert lines(chrome, "queued") == [] and texts(chrome, "[data-chart=queued] .nothing") == ["nothing to show"]
    assert lines(chrome, "replicas") == ["parse", "store"]


def test_queues_can_be_seen_on_a_logarithmic_axis(shows: Shows) -> None:
    chrome = shows(a_run_page())
    one(chrome, "[data-chart=queued] [data-scale=log]").click()
    assert texts(chrome, "[data-chart=queued] .axis .y") == ["0", "1", "10", "100"]
    one(chrome, "[data-chart=queued] [data-scale=linear]").click()
    assert texts(chrome, "[data-chart=queued] .axis .y")[-1] == "800"


def test_decisions_can_be_searched(shows: Shows) -> None:
    chrome = shows(run_page(a_report(decisions=40, every_s=1.0), a_series(), some_latencies(), None))
    one(chrome, "#decisions summary").click()
    one(chrome, "#decisions input").send_keys("store 39")
    wait(
        chrome,
        lambda: texts(chrome, "#decisions tbody tr:not([hidden]) td:last-child") == ["reason 39: because store has to"],
    )
    assert texts(chrome, "#decisions output") == ["1 of 40"]


# Any screen, any data


@pytest.mark.parametrize("page", [a_run_page, a_suite_page])
def test_a_page_is_as_wide_as_a_phone_and_not_wider(shows: Shows, page: Callable[[], str]) -> None:
    chrome = shows(page(), **PHONE)
    chrome.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert chrome.run("return document.documentElement.scrollWidth <= innerWidth && innerWidth === 360")
    sizes = chrome.run(
        "return [...document.querySelectorAll('.axis text')].map((e) => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 10


def test_names_from_outside_stay_names(shows: Shows) -> None:
    report = a_report(HOSTILE) | {"name": HOSTILE[0], "policy": HOSTILE[1]}
    for decision in report["decisions"]:
        decision["reason"] = HOSTILE[0] + HOSTILE[1]
    report["remarks"] = [{"t_s": 1.0, "kind": HOSTILE[1], "words": HOSTILE[0]}]
    chrome = shows(run_page(report, a_series(HOSTILE), some_latencies(), a_curve()), **PHONE)
    assert texts(chrome, "h1") == [HOSTILE[0]]
    assert lines(chrome, "queued") == [HOSTILE[1], HOSTILE[2]]
    assert texts(chrome, "[data-chart=queued] .legend button") == [HOSTILE[1], HOSTILE[2]]
    ActionChains(chrome.driver).move_to_element(one(chrome, ".mark")).perform()
    wait(chrome, lambda: "window.owned=1" in tip(chrome, "replicas"))
    assert chrome.run("return [window.owned, document.images.length, document.scripts.length]") == [None, 0, 2]
    assert chrome.run("return document.documentElement.scrollWidth <= innerWidth")


def test_a_name_that_got_through_would_not_run_either(shows: Shows) -> None:
    page = a_run_page().replace("<h1>pages</h1>", "<h1>pages</h1><script>window.owned = 1</script>")
    chrome = shows(page)
    assert chrome.run("return window.owned") is None
    (error,) = chrome.errors()
    assert "Content Security Policy" in error


def a_sample(name: str) -> Series:
    series = Series()
    series.add(name, Sample(0.5, 0.5, 1, 1, 0, 3, 2, 0.1, 1, 1))
    return series


@pytest.mark.parametrize(
    ("report", "series"),
    [
        ({}, Series()),
        (a_report(decisions=0), Series()),
        (
            {"events": {"entered": 3, "finished": 1}, "operators": {}, "ai_sps": {"reason": "no spike"}},
            a_sample("only"),
        ),
        ({"sources": [], "decisions": a_report()["decisions"], "ai_sps": None, "load": None}, a_sample("only")),
    ],
)
def test_little_or_no_data_makes_a_page_too(shows: Shows, report: dict[str, Any], series: Series) -> None:
    chrome = shows(run_page(report, series, (), None))
    assert len(texts(chrome, "h1")) == 1 and len(texts(chrome, ".card")) == 6
    assert len(texts(chrome, ".plot > svg")) == 3
    assert "NaN" not in chrome.run("return document.querySelector('main').innerHTML")


def test_a_long_run_with_many_operators_stays_small_and_fast(shows: Shows) -> None:
    names = ("in", *(f"operator {n}" for n in range(20)))
    series = Series()
    waves = np.abs(np.cumsum(np.random.default_rng(7).integers(-50, 51, 20_000))).tolist()
    for position, name in enumerate(names):
        series.operators[name] = [
            Sample(n / 2, 0.5, 100, 100, 0, queued * position, 1 + n // 50 % 8, 0.1, 0 if position else 100, 100)
            for n, queued in enumerate(waves, 1)
        ]
    report = a_report(names, decisions=1000, every_s=10.0)
    page = run_page(report, series, some_latencies(10_000.0), None)
    assert len(page.encode()) < 2_000_000
    chrome = shows(page)
    assert len(lines(chrome, "queued")) == 20 and len(texts(chrome, ".mark")) == 1000
    assert texts(chrome, "[data-chart=queued] figcaption p")[0].startswith(
        f"The longest queue was {max(waves) * 20:,} tuples"
    )
    assert chrome.run("return performance.getEntriesByType('navigation')[0].domInteractive") < 5000


def background(chrome: Browser) -> str:
    color: str = chrome.run("return getComputedStyle(document.body).backgroundColor")
    return color


def test_a_page_is_dark_for_those_who_like_it_and_white_on_paper(shows: Shows) -> None:
    seen = [
        background(shows(a_run_page(), prefers_color_scheme="light")),
        background(shows(a_run_page(), prefers_color_scheme="dark")),
        background(shows(a_run_page(), type="print", prefers_color_scheme="dark")),
    ]
    assert seen == ["rgb(244, 246, 248)", "rgb(14, 19, 25)", "rgb(255, 255, 255)"]


# The page of a suite


def test_a_suite_has_its_runs_side_by_side_on_the_same_axes(shows: Shows) -> None:
    chrome = shows(a_suite_page())
    places = "return [...document.querySelectorAll('.runs > section')].map((e) => e.getBoundingClientRect().toJSON())"
    assert len({place["y"] for place in chrome.run(places)}) == 1
    for kind in ("rates", "queued", "replicas"):
        axes = [texts(chrome, f"[data-chart={kind}-{n}] .axis text") for n in range(3)]
        assert axes[0] == axes[1] == axes[2] and len(axes[0]) > 4
        tops = chrome.run(
            "return [...document.querySelectorAll(`[data-chart^=${arguments[0]}-] .plot`)].map((e) => e.getBoundingClientRect().y)",
            kind,
        )
        assert len(tops) == 3 and len(set(tops)) == 1
    chrome.run("document.querySelector('.common [data-scale=log]').click()")
    assert texts(chrome, "[data-chart=queued-1] .axis .y") == ["0", "1", "10", "100", "1k"]
    chrome = shows(a_suite_page(), **PHONE)
    stacked = chrome.run(places)
    assert len({place["x"] for place in stacked}) == 1 and len({place["y"] for place in stacked}) == 3


def test_a_suite_is_sorted_by_its_heads_and_leads_to_its_runs(shows: Shows) -> None:
    chrome = shows(a_suite_page())
    assert texts(chrome, "tbody .best") == ["0.80", "900"]
    assert texts(chrome, "tbody th") == ["psps", "r = 1", "<i>r</i>"]
    head = chrome.driver.find_elements(By.CSS_SELECTOR, "thead button")[2]
    head.click()
    assert texts(chrome, "tbody th") == ["r = 1", "psps", "<i>r</i>"]
    head.click()
    assert texts(chrome, "tbody th") == ["<i>r</i>", "psps", "r = 1"]
    assert one(chrome, "thead th:nth-child(3)").get_attribute("aria-sort") == "descending"
    links = chrome.run("return [...document.querySelectorAll('h2 a')].map((a) => a.getAttribute('href'))")
    assert links == ["psps/report.html", "r%20-%201/report.html"]
