"""What the pages show, before a browser sees it: points, words, and text that stays text."""

import json
import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.report import Sample, Series
from elastream.report.pages.charts import as_json, end_of, queued_chart, rates, rates_chart, sources_of
from elastream.report.pages.parts import SCRIPTS, embedded, text
from elastream.report.pages.words import clock, count, share, span, verdict
from elastream.report.thinning import changes, outline, per_second, together
from elastream_lab.bench.suites.suite_page import Better, SuiteRun, best_of, suite_page

POINTS = st.lists(st.integers(-1000, 1000), min_size=1, max_size=400)


def numbers(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


# Fewer points


@given(POINTS, st.integers(6, 60))
def test_a_thinned_line_keeps_its_ends_and_its_peaks(values: list[int], most: int) -> None:
    t, y = np.arange(len(values), dtype=np.float64), np.array(values, dtype=np.float64)
    kept_t, kept_y = outline(t, y, most)
    assert len(kept_t) <= max(most, 1) or len(values) <= most
    assert kept_t[0] == t[0] and kept_t[-1] == t[-1] and (np.diff(kept_t) > 0).all()
    assert kept_y.min() == y.min() and kept_y.max() == y.max()
    assert set(zip(kept_t, kept_y, strict=True)) <= set(zip(t, y, strict=True))


def test_every_stretch_of_a_thinned_line_keeps_its_own_peak() -> None:
    y = np.zeros(10_000)
    y[50::100] = np.arange(100) + 1
    kept = outline(np.arange(10_000.0), y, 402)[1]
    assert sorted(kept[kept > 0]) == list(range(1, 101))


def test_times_that_are_all_the_same_can_be_thinned() -> None:
    t, y = outline(np.full(100, 3.0), np.arange(100.0), 10)
    assert set(y) == {0.0, 99.0} and set(t) == {3.0}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=200))
def test_steps_are_the_same_with_only_their_changes(values: list[int]) -> None:
    t, y = np.arange(len(values), dtype=np.float64), np.array(values, dtype=np.float64)
    kept_t, kept_y = changes(t, y)
    assert (kept_y[np.searchsorted(kept_t, t, side="right") - 1] == y).all()
    assert len(kept_t) <= 2 + np.count_nonzero(np.diff(y))


def test_a_rate_keeps_its_sum_when_ticks_and_bins_do_not_agree() -> None:
    ends, counts = np.cumsum(numbers(0.7, 1.9, 0.3, 4.0)), numbers(70, 0, 30, 400)
    t, rate = per_second(ends, counts, ends[-1])
    assert rate.sum() * (t[1] - t[0]) == pytest.approx(500)
    assert rate[0] == pytest.approx(100) and rate[-1] == pytest.approx(100)


def test_operators_with_other_ticks_are_added_at_every_time() -> None:
    t, y = together([(numbers(1, 2, 4), numbers(1, 2, 3)), (numbers(2, 3), numbers(10, 20)), (numbers(), numbers())])
    assert t.tolist() == [1, 2, 3, 4]
    assert y.tolist() == [11, 12, 22, 23]


# Words


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (count(1234567), "1,234,567"),
        (count(2.5), "2.5"),
        (count(None), "–"),
        (count(float("nan")), "–"),
        (share(0.573), "57\u00a0%"),
        (share(0.999999), "99.99\u00a0%"),
        (share(1.0), "100\u00a0%"),
        (share(0.00001), "<0.01\u00a0%"),
        (share(0.0), "0\u00a0%"),
        (share(-0.25), "-25\u00a0%"),
        (span(0.0004), "0.4\u00a0ms"),
        (span(0.25), "250\u00a0ms"),
        (span(0.9999), "1.00\u00a0s"),
        (span(1.791), "1.79\u00a0s"),
        (span(46.0), "46\u00a0s"),
        (span(200), "3\u00a0min 20\u00a0s"),
        (span(7200), "2\u00a0h"),
        (clock(13.61), "13.6\u00a0s"),
        (clock(725), "12:05"),
        (clock(3725), "1:02:05"),
    ],
)
def test_numbers_are_written_as_people_do(said: str, expected: str) -> None:
    assert said == expected


def test_the_verdict_says_what_became_of_every_tuple() -> None:
    events = {"entered": 1000, "finished": 1000, "dropped": 0, "queued": 0, "duplicates": 0}
    report: dict[str, Any] = {"events": events, "saved_resources": 0.57, "rescales": 3}
    assert verdict(report) == (
        "1,000 tuples read, all finished; nothing dropped; replicas followed the load: 57\u00a0% fewer than sized for the peak."
    )
    report = {
        "events": {**events, "finished": 900, "dropped": 40, "queued": 60, "duplicates": 2},
        "saved_resources": 0.0,
    }
    assert verdict(report) == (
        "1,000 tuples read, 900 finished; 60 still waited at the end; 40 were dropped; 2 came twice; "
        "the replicas stayed as they were: no fewer than sized for the peak."
    )
    report["events"] |= {"created": 200, "dropped": 1, "dead_letters": 39, "duplicates": 0}
    assert verdict(report).startswith(
        "800 tuples read and 200 created, 900 finished; 60 still waited at the end; 39 are dead letters; 1 was dropped; "
    )
    assert verdict({}).startswith("No tuple was read;")


# What a chart shows


def split_flow() -> Series:
    """A source brings in ten tuples a second; an operator makes two of each."""
    series = Series()
    for n in range(1, 21):
        series.add("in", Sample(n, 1.0, 10, 10, 0, 0, 1, 0.1, entered=10))
        series.add("split", Sample(n, 1.0, 10, 20, 0, 5, 1, 0.1, entered=10, finished=20))
    return series


def test_where_a_flow_splits_input_and_output_can_be_compared() -> None:
    series = split_flow()
    arriving, finished = rates(series, ["in"], 20.0)
    assert arriving.y == pytest.approx(20.0) and finished.y == pytest.approx(20.0)
    assert "counts as the 2.00 that become of it" in rates_chart(series, ["in"], 20.0).caption


def test_an_old_report_has_its_sources_where_tuples_enter() -> None:
    series = Series()
    series.add("a", Sample(1.0, 1.0, 10, 10, 0, 0, 1, 0.1, entered=10))
    series.add("b", Sample(1.0, 1.0, 10, 10, 0, 0, 1, 0.1, finished=10))
    assert sources_of({}, series) == ("a",)
    assert sources_of({}, split_flow()) == ("in",)
    assert sources_of({"sources": ["b"]}, series) == ("b",)
    assert end_of({"decisions": [{"t_s": 3.5}]}, series, ()) == 3.5


def test_numbers_that_json_does_not_know_are_left_out() -> None:
    chart = queued_chart(split_flow(), ["split"], 20.0)
    line = chart.lines[0]
    line.y[:2] = np.nan, np.inf
    document = as_json(chart)
    assert len(document["lines"][0]["y"]) == len(line.y) - 2
    assert json.loads(embedded(document)) == document


# Text stays text


@given(st.text())
def test_nothing_in_embedded_json_ends_its_element(name: str) -> None:
    said = embedded({name: ["</script>", name]})
    assert not set("<>&\u2028\u2029") & set(said)
    assert json.loads(said) == {name: ["</script>", name]}


def test_half_a_surrogate_in_a_name_can_still_be_written() -> None:
    assert json.loads(embedded(["\ud800"]).encode()) == ["?"]
    assert text("\ud800<").encode() == b"?&lt;"


def test_a_link_of_a_suite_cannot_run_a_script() -> None:
    report: dict[str, Any] = {"events": {}, "sources": []}
    page = suite_page("s", "", ["", "x"], [["a", "1"]], [SuiteRun("a", report, Series(), link="javascript:alert(1)")])
    assert 'href="javascript%3Aalert%281%29"' in page and "javascript:" not in page


@pytest.mark.parametrize(
    ("values", "better", "best"),
    [
        (["1,200", "900 ms", "15,000"], "low", {"900 ms"}),
        (["0.5", "0.50", "0.1"], "high", {"0.5", "0.50"}),
        (["0", "0"], "low", set()),
        (["not measured", "3", ""], "low", set()),
        (["-1", "2e3", "7"], "high", {"2e3"}),
    ],
)
def test_the_best_of_a_column(values: list[str], better: Better, best: set[str]) -> None:
    assert best_of(values, better) == best


# The style sheet and the scripts


def schemes() -> dict[str, dict[str, str]]:
    """The colours by day, and by night."""
    sheet = files("elastream.report.pages").joinpath("web", "page.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in re.findall(r":root \{(.*?)\}", sheet, re.S)[:2]
    )
    return {"light": light, "dark": dark}


def contrast(a: str, b: str) -> float:
    """As WCAG counts it."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_what_is_behind_them(scheme: str) -> None:
    colours = schemes()[scheme]
    assert len(colours) == 16
    for name in ("ink", "soft", "accent", "good", "poor"):
        assert contrast(colours[name], colours["card"]) >= 4.5, name
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    for name in ("input", "c0", "c1", "c2", "c3", "c4", "c5"):
        assert contrast(colours[name], colours["card"]) >= 3, name


def test_every_script_of_the_folder_is_on_the_page() -> None:
    folder = files("elastream.report.pages").joinpath("web")
    assert sorted(SCRIPTS) == sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".js"))


def test_a_run_that_finished_less_than_others_is_not_the_best_at_saving() -> None:
    ratios = {"r = 1": 0.43, "PSPS": 1.0, "r = 8": 1.0}
    runs = [SuiteRun(label, {"processed_ratio": ratio}, Series()) for label, ratio in ratios.items()]
    rows = [["r = 1", "0.9688"], ["PSPS", "0.8000"], ["r = 8", "0.7500"]]
    page = suite_page("s", "", ["", "saved"], rows, runs, {"saved": "high"})
    assert '<b class="best">0.8000</b>' in page and '<b class="best">0.9688</b>' not in page
