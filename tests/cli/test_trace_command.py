"""`elastream trace`, as a person types it: the list, the drawing, the files, the errors."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from elastream.cli import trace
from elastream.errors import SettingError
from elastream.workload import (
    DataSpike,
    VolumeSpike,
    constant,
    from_csv,
    load_trace,
    parse_workload,
    steps,
    trace_names,
    with_spikes,
)
from elastream.workload.chart import draw_chart, short, span_word

SPIKE = "at_s=100,duration_s=80,time_to_peak_s=10,magnitude=4"


def elastream(*words: str) -> int:
    parser = argparse.ArgumentParser()
    trace.add_arguments(parser)
    return trace.main(parser.parse_args(words))


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert elastream(*words) == 0
    return capsys.readouterr().out


def test_the_list_names_every_trace_with_its_figures_and_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown(capsys, "list").splitlines()
    assert max(map(len, lines)) <= 80
    for name in trace_names():
        assert sum(line.startswith(f"│ {name} ") for line in lines) == 1
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
    (row,) = [line for line in lines if line.startswith("│ covid_tweets ")]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["covid_tweets", "45 min", "5 s", "26k", "9.64", "32.6"]
    assert any("CC-BY-4.0" in line for line in lines)


def test_the_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in json.loads(shown(capsys, "list", "--json"))}
    assert list(rows) == trace_names()
    assert rows["azure_llm_conv"]["tuples"] == 19_366
    assert rows["azure_llm_conv"]["step_s"] == 1.0
    assert "CC-BY-4.0" in rows["azure_llm_conv"]["source"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_drawing_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = shown(capsys, "show", "covid_tweets", "--speed", "5", "--spike", SPIKE, "--spike", "random").splitlines()
    assert max(map(len, lines)) <= width
    assert sum("█" in line for line in lines) >= 6
    assert sum("━" in line for line in lines) >= 2


def test_the_drawing_says_total_mean_and_peak_and_marks_spikes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    said = shown(
        capsys, "show", "constant:per_second=100,seconds=200", "--spike", SPIKE, "--spike", "at_s=20,duration_s=40,hot_keys=3,share=0.5"
    )  # fmt: skip
    # 100 a second, and three times as many more for half of ten, 35 and half of 35 seconds.
    assert said.startswith(
        "constant:per_second=100,seconds=200: 37,250 tuples in 200 s, mean 186/s, peak 400/s, 2.15 x the mean\n"
    )
    assert "4 x tuples" in said
    assert "50% to 3 keys" in said


def test_spikes_without_a_line_under_the_drawing_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, "show", "covid_tweets", "--spike", "random:count=20", "--seed", "1")
    assert said.count("and at ") > 10


def test_the_chart_is_as_high_as_the_rate() -> None:
    chart = draw_chart(steps([100, 200, 50, 0], 40), [], width=47, height=4)
    ten, none = "█" * 10, " " * 10
    assert chart.bars == (
        "200/s ┤" + none + ten + none + none,
        "      │" + none + ten + none + none,
        "100/s ┤" + ten + ten + none + none,
        "      │" + ten + ten + ten + none,
    )
    assert chart.axis == (
        "    0 ┼┬─────────┬─────────┬─────────┬─────────",
        "       0 s       10        20        30",
    )


def test_a_column_is_the_mean_and_shows_the_busiest_step_lightly() -> None:
    # Every second column's worth of time is empty: half of the rate on the mean, and all of it in the busiest step.
    rates = [200, 0] * 200
    chart = draw_chart(steps(rates, 400), [], width=47, height=4)
    column = [bar[chart.margin + 5] for bar in chart.bars]
    assert column == ["░", "░", "█", "█"]


def test_a_rate_that_is_not_nothing_is_seen() -> None:
    chart = draw_chart(steps([1, 100_000, 0], 30), [], width=37, height=5)
    bottom = chart.bars[-1][chart.margin :]
    assert bottom[0] == "▁"
    assert bottom[-1] == " "


def test_spikes_lie_under_the_time_at_which_they_are() -> None:
    volume = VolumeSpike(at_s=50, time_to_peak_s=10, peak_s=20, duration_s=40, magnitude=3)
    data = DataSpike(at_s=90, duration_s=10, hot_keys=1, share=0.25)
    arrivals = with_spikes(constant(100, 100), [volume, data])
    chart = draw_chart(arrivals, [volume, data], width=100 + 7)
    (_, first), (_, second) = chart.spikes
    assert chart.margin == 7
    # Beside it is too little room for its words, so that they stand before it.
    assert first[7:] == " " * 39 + "3 x tuples " + "─" * 10 + "━" * 21 + "─" * 10
    assert second[7:] == " " * (89 - len("25% to 1 key")) + "25% to 1 key " + "━" * 6 + "─" * 4


@pytest.mark.parametrize(
    ("value", "word"), [(0, "0"), (0.194, "0.194"), (7.25, "7.25"), (431.4, "431"), (2817, "2817"), (12_345, "12.3k"), (4.5e6, "4.5M")]
)  # fmt: skip
def test_numbers_in_few_characters(value: float, word: str) -> None:
    assert short(value) == word


@pytest.mark.parametrize(("seconds", "word"), [(0.5, "0.5 s"), (300, "5 min"), (43_200, "12 h"), (604_800, "7 d")])
def test_times_in_the_unit_that_suits(seconds: float, word: str) -> None:
    assert span_word(seconds) == word


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = shown(
        capsys, "show", "covid_tweets", "--speed", "5", "--spike", SPIKE, "--csv", str(tmp_path / "a.csv"), "--json"
    )
    document = json.loads(said)
    arrivals = parse_workload("covid_tweets", speed=5, spikes=[SPIKE])
    assert document["tuples"] == arrivals.total
    assert document["peak_over_mean"] == pytest.approx(arrivals.peak_per_s / arrivals.mean_per_s)
    assert document["spikes"] == [
        {
            "kind": "volume",
            "corners_s": [100.0, 110.0, 145.0, 180.0],
            "at_s": 100.0,
            "duration_s": 80.0,
            "time_to_peak_s": 10.0,
            "peak_s": None,
            "magnitude": 4.0,
        }
    ]


def test_the_trace_file_has_the_tuples_and_is_the_same_for_the_same_seed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["show", "worldcup98_matchday", "--speed", "720", "--scale", "0.001", "--spike", "random"]
    for name, seed in (("one", "7"), ("two", "7"), ("other", "8")):
        shown(capsys, *words, "--seed", seed, "--csv", str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes() != (tmp_path / "other").read_bytes()
    arrivals = parse_workload("worldcup98_matchday", speed=720, scale=0.001, spikes=["random"], seed=7)
    again = from_csv(tmp_path / "one")
    assert again.total == arrivals.total
    assert again.due_by(30) == arrivals.due_by(30)


def test_a_shipped_trace_is_written_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shown(capsys, "show", "elb_requests", "--csv", str(tmp_path / "out.csv"))
    assert from_csv(tmp_path / "out.csv") == load_trace("elb_requests")


def test_a_picture_is_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    said = shown(capsys, "show", "covid_tweets", "--spike", SPIKE + ",hot_keys=3,share=0.5", "--png", str(path))
    assert f"picture {path}" in said.replace("\n", "")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


def test_matplotlib_is_loaded_for_a_picture_only() -> None:
    script = (
        "import sys, argparse; from elastream.cli import trace; parser = argparse.ArgumentParser(); "
        "trace.add_arguments(parser); trace.main(parser.parse_args(['show', 'covid_tweets'])); "
        "sys.exit('matplotlib' in sys.modules or 'pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["covid_twets"], "workload 'covid_twets': no such trace, file or shape; did you mean 'covid_tweets'?"),
        (["covid_tweets", "--speed", "0"], "speed must be more than 0 and finite, got 0.0"),
        (["covid_tweets", "--scale", "-1"], "scale must be more than 0 and finite, got -1.0"),
        (["covid_tweets", "--seed", "-1"], "seed must be a whole number from 0 on, got -1"),
        (["covid_tweets", "--spike", "soon"], "spike 'soon': expected name=number, got 'soon'; for example at_s=60"),
        (["covid_tweets", "--png", "none/out.png"], "picture none/out.png: cannot be written: "),
        (["covid_tweets", "--png", "out.what"], "picture out.what: cannot be written: "),
        (["covid_tweets", "--csv", "none/out.csv"], "trace none/out.csv: cannot be written: No such file or directory"),
        (["covid_tweets", "--csv", "out.csv", "--step", "0"], "step_s must be more than 0 and finite, got 0.0"),
        (["broken.csv"], "trace broken.csv, line 3: expected a count of 0 or more, got -2.0"),
    ],
)
def test_a_wrong_call_is_said_in_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.csv").write_text("t_seconds,events\n0,1\n1,-2\n")
    with pytest.raises(SettingError) as caught:
        elastream("show", *words)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_workload_in_which_nothing_comes_is_drawn_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("calm.csv").write_text("t_seconds,events\n0,0\n1,0\n")
    said = shown(capsys, "show", "calm.csv")
    assert said.startswith("calm.csv: 0 tuples in 2 s, mean 0/s, peak 0/s\n")
    assert "█" not in said
