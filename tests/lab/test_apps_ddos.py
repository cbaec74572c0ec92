"""The detection of attacks: traffic, windows, the model of what is normal, and the whole flow against a direct computation."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flows import finish, wait_for
from pyspark.sql import SparkSession
from stored import results_of

from elastream import Topology, start
from elastream.cli.main import main
from elastream.cli.run import sink_summaries
from elastream.errors import SettingError
from elastream.simulator.profile import load_profile
from elastream.testing import LocalEngine
from elastream.workload import constant
from elastream_lab.apps.ddos import app as ddos
from elastream_lab.apps.ddos.clock import KINDS, START_US, WEEK_S, flow_clock
from elastream_lab.apps.ddos.detection import Detection, detection
from elastream_lab.apps.ddos.features import FEATURES, window_features
from elastream_lab.apps.ddos.learning import WINDOW_S, generated_model, learn, records_in
from elastream_lab.apps.ddos.parsing import flows_of, lines_of, parse_flows
from elastream_lab.apps.ddos.payload import flow_payload
from elastream_lab.apps.ddos.subspace_model import SubspaceModel, encode_model, fit_subspace, q_limit, read_model
from elastream_lab.apps.ddos.traffic import RECORD, Traffic
from elastream_lab.apps.results.database import stored_rows
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant

REAL = """datetime,host,src,proto,type,spt,dpt
2013-07-22 00:01:34,groucho-oregon,3702832758,TCP,,6000,3389
2013-07-22 00:00:07,groucho-oregon,2032483108,UDP,,6000,1433
2013-07-22 00:05:42,groucho-eu,3527252052,ICMP,8,,
"""


def table_of(flows: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([flows])


def directly(flows: pa.RecordBatch, model: SubspaceModel) -> list[tuple[Any, ...]]:
    """Per window its start, its flows, its score, the verdict and its label, without any engine."""
    windows, features, labels = window_features(table_of(flows), model.window_s)
    counts = np.round(np.expm1(features[:, 0])).astype(int).tolist()
    scores = model.scores(features).tolist()
    return [
        (begin, count, score, score > 1, label)
        for begin, count, score, label in zip(windows.to_pylist(), counts, scores, labels.to_pylist(), strict=True)
    ]


def in_table(app: Topology) -> list[tuple[Any, ...]]:
    rows = stored_rows(results_of(app.build()))
    found = []
    for _, begin, flows, score, flagged, label, target in rows:
        assert bool(target) == bool(flagged)
        start_s = pa.scalar(begin.removesuffix("+00:00")).cast(pa.timestamp("us")).value // 1_000_000
        found.append((start_s, flows, score, bool(flagged), label))
    return sorted(found)


def assert_same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert [row[:2] + row[3:] for row in found] == [row[:2] + row[3:] for row in expected]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], rel=1e-9)


# -- traffic


def test_a_flow_depends_on_its_number_alone_and_weeks_follow_one_another() -> None:
    traffic, clock = Traffic(), flow_clock(0, True)
    whole = traffic(np.arange(3000))
    assert traffic(np.array([77, 2900])).to_pylist() == whole.take(pa.array([77, 2900])).to_pylist()
    around = clock.at_us(np.arange(clock.total - 5, clock.total + 5))
    assert (np.diff(around) > 0).all() and around[5] >= START_US + WEEK_S * 1_000_000 > around[4]
    assert Traffic(seed=2)(np.arange(50)) != whole.slice(0, 50)


def test_the_flows_of_a_window_are_all_that_happened_in_it() -> None:
    clock = flow_clock(1, False)
    second = (clock.at_us(np.arange(4000)) - START_US) // 1_000_000
    for first, stop in ((0, 60), (60, 120), (185, 190)):
        assert (
            clock.numbers_between(first, stop).tolist() == np.flatnonzero((second >= first) & (second < stop)).tolist()
        )


def test_days_are_busier_than_nights_and_weekends_and_attacks_add_to_that() -> None:
    calm, attacked = flow_clock(3, False), flow_clock(3, True)
    hours = np.histogram((calm.at_us(np.arange(0, calm.total, 50)) - START_US) / 3.6e9, np.arange(169))[0]
    # The week begins at 8 on a Monday: the evening, the night, and Saturday's evening.
    assert hours[12] > 5 * hours[19] and hours[12 + 5 * 24] == pytest.approx(0.6 * hours[12], rel=0.02)
    surplus = sum(attack.per_s * attack.steps * 10 for attack in attacked.attacks)
    assert attacked.total == pytest.approx(calm.total + surplus, rel=0.001)
    assert {attack.kind for attack in attacked.attacks} == set(KINDS)


def test_attacked_flows_are_labelled_and_have_one_target() -> None:
    clock = flow_clock(0, True)
    attack = clock.attacks[0]
    first, stop = (int(clock.counts[attack.step + n]) for n in (0, attack.steps))
    flows = Traffic()(np.arange(first, stop)).to_pylist()
    mine = [flow for flow in flows if flow["label"] == attack.kind]
    assert len(mine) == pytest.approx(attack.per_s * attack.steps * 10, rel=0.1)
    assert {flow["label"] for flow in flows} == {"", attack.kind}
    assert len({flow["destination"] for flow in mine}) == 1 < len({flow["destination"] for flow in flows})


def test_lines_are_read_back_as_the_records_they_were() -> None:
    records = Traffic()(np.arange(1500, 1900))
    lines = lines_of(records)
    assert lines[0].as_py().count(",") == len(RECORD) - 1
    assert parse_flows(pa.RecordBatch.from_arrays([lines], names=["raw"])) == flows_of(records)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hello", "got 1 cells: 'hello'"),
        ("soon,a,b,TCP,1,2,3,4,5,", "column time"),
        ("2026-03-02 08:00:00,a,b,TCP,1,2,many,4,5,", "column packets"),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_the_reason(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_flows(pa.RecordBatch.from_pydict({"raw": [line]}))


# -- files


def test_a_file_comes_in_the_order_of_its_times_and_again_later(tmp_path: Path) -> None:
    file = tmp_path / "flows.csv"
    file.write_text(REAL)
    payload = flow_payload(str(file))
    flows = parse_flows(pa.RecordBatch.from_pydict({"raw": payload(np.arange(6))["raw"]})).to_pylist()
    assert [flow["port"] for flow in flows] == ["1433", "3389", "0"] * 2
    assert flows[0]["source"] == "2032483108" and flows[0]["destination"] == "groucho-oregon"
    assert flows[0]["packets"] == 1 and flows[0]["label"] == ""
    # From 00:00:07 to 00:05:42, and the mean of the gaps until the first comes again.
    assert (flows[3]["at"] - flows[0]["at"]).total_seconds() == pytest.approx(335 + 167.5)
    assert payload.per_s == pytest.approx(3 / 502.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,src,proto\n", "line 1: expected a column destination (or dst, dstaddr"),
        (REAL + "2013-07-22,x\n", "line 5: expected 7 cells, got 2"),
        (
            REAL.replace("2013-07-22 00:00:07", "yesterday"),
            "line 3: expected a time such as 2026-03-02 08:00:00 as time",
        ),
        (REAL.replace("1433", "mssql"), "line 3: expected a number as port, got 'mssql'"),
        (REAL.replace("groucho-eu", '"eu, west"'), "line 4: expected no comma within destination"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "flows.csv"
    file.write_text(text + ("2013-07-22,a,b\n" if "\n" not in text[:-1] else ""))
    with pytest.raises(SettingError) as refused:
        flow_payload(str(file))
    assert said in str(refused.value) and "\n" not in str(refused.value)


# -- the model


def test_attacks_on_a_seeded_morning_are_found_and_little_else_is() -> None:
    flows = flows_of(Traffic(seed=11)(np.arange(130_000)))
    rows = directly(flows, generated_model())
    found = detection((flagged, label) for *_, flagged, label in rows)
    assert found.windows > 240 and found.attacked > 20
    assert found.precision > 0.9 and found.recall > 0.85, str(found)


def test_normal_times_are_flagged_about_as_seldom_as_the_limit_says() -> None:
    variances = np.linspace(0.5, 0.1, 10)
    drawn = np.random.default_rng(5).standard_normal((300_000, 10)) * np.sqrt(variances)
    passed = np.mean((drawn**2).sum(axis=1) > q_limit(variances) ** 2)
    assert 0.0005 < passed < 0.002


def test_what_goes_up_and_down_together_is_normal_and_what_parts_is_not() -> None:
    random = np.random.default_rng(1)
    busy = random.normal(size=(500, 1))
    normal = busy * np.linspace(0.5, 2, len(FEATURES)) + 0.1 * random.normal(size=(500, len(FEATURES)))
    model = fit_subspace(normal, 60)
    together = 3 * np.linspace(0.5, 2, len(FEATURES))
    apart = together.copy()
    apart[-1] = -6.0
    scores = model.scores(np.stack([together, apart]))
    assert len(model.components) == 1 and scores[0] < 1 < 5 < scores[1]


def test_a_model_is_the_same_after_it_was_written_and_read(tmp_path: Path) -> None:
    model, file = generated_model(), tmp_path / "model.json"
    file.write_bytes(encode_model(model))
    features = window_features(table_of(flows_of(Traffic()(np.arange(2000)))), WINDOW_S)[1]
    again = read_model(str(file))
    assert again.scores(features).tolist() == model.scores(features).tolist()
    assert (again.window_s, again.windows) == (60, model.windows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory; write one with elastream learn ddos"),
        ("[]", "not a model"),
        ('{"version": 9}', "not a model: made by another version: 9"),
        ('{"version": 1}', "not a model: object missing required field features"),
    ],
)
def test_a_file_that_is_no_model_is_refused(text: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingError) as refused:
        ddos.topology(database=str(tmp_path / "x.sqlite"), model=str(file))
    assert said in str(refused.value)


def test_too_little_traffic_is_nothing_to_learn_from() -> None:
    with pytest.raises(SettingError, match="expected 32 windows or more, got 3 of 60 s; give more traffic"):
        fit_subspace(np.zeros((3, len(FEATURES))), 60)


def test_precision_and_recall_are_those_of_windows() -> None:
    found = detection([(True, "syn-flood"), (True, ""), (False, "udp-flood"), (True, "udp-flood"), (False, "")])
    assert found == Detection(windows=5, attacked=3, flagged=3, found=2)
    assert found.precision == found.recall == pytest.approx(2 / 3)
    assert np.isnan(detection([(False, "")]).recall)
    assert str(found) == "5 windows, 3 attacked, 3 flagged, 2 of these rightly: precision 0.67, recall 0.67"


# -- the flow


def test_the_flow_gives_the_windows_of_a_direct_computation_while_replicas_change(tmp_path: Path) -> None:
    app = ddos.topology(constant(2500, 2.0), database=str(tmp_path / "x.sqlite"), grouping="least_loaded")
    steps = [(3, 2), (1, 4), (2, 3)]
    with LocalEngine().start(app, str(tmp_path / "base")) as handle:
        for place, (some, others) in enumerate(steps):
            wait_for(lambda place=place: handle.totals("by-source").processed > 500 * place)  # type: ignore[misc]
            for name in ("parse", "by-source", "by-protocol", "analyze"):
                handle.scale(name, some)
            for name in ("by-destination", "by-port", "assemble", "store"):
                handle.scale(name, others)
        finish(handle)
        assert handle.dead_letters().num_rows == 0 and handle.audit().problems == ()
        assert {handle.totals(f"by-{by}").late for by in ("source", "destination", "port", "protocol")} == {0}
        assert {move.operator for move in handle.state_moves} >= {"by-source", "by-destination"}
        assert handle.state("assemble").num_rows == handle.state("by-source").num_rows == 0
    expected = directly(flows_of(Traffic()(np.arange(5000))), generated_model())
    assert Counter(label for *_, label in expected)["syn-flood"] >= 4
    assert_same(in_table(app), expected)
    (summary,) = sink_summaries(app.build())
    assert summary.splitlines()[1] == str(detection((flagged, label) for *_, flagged, label in expected))


@pytest.mark.slow
def test_spark_learns_what_is_normal_and_the_stream_applies_it(spark: SparkSession, tmp_path: Path) -> None:
    model = learn(spark, records_in(spark, None))
    assert model.windows == generated_model().windows
    some = window_features(table_of(flows_of(Traffic(seed=4)(np.arange(20_000)))), WINDOW_S)[1]
    assert model.scores(some) == pytest.approx(generated_model().scores(some), rel=1e-6)

    # From a file, by the command: windows of half a minute of one calm stretch.
    calm, file = Traffic(seed=1, attacks=False)(np.arange(12_000)), tmp_path / "flows.csv"
    file.write_text("\n".join([",".join(RECORD.names), *lines_of(calm).to_pylist()]))
    arguments = ["learn", "ddos", "--payload", str(file), "--window", "30", "--model", str(tmp_path / "model.json")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elastream.engine.session", lambda master=None: spark)
        assert main(arguments) == 0
    learned = read_model(str(tmp_path / "model.json"))
    features = window_features(table_of(flows_of(calm)), 30)[1]
    assert learned.window_s == 30 and learned.scores(features) == pytest.approx(
        fit_subspace(features, 30).scores(features)
    )

    app = ddos.topology(
        constant(1500, 2.0), database=str(tmp_path / "x.sqlite"), model=str(tmp_path / "model.json"), replicas=2
    )
    with start(app, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        finish(handle)
        assert handle.dead_letters().num_rows == 0
    rows = in_table(app)
    assert_same(rows, directly(flows_of(Traffic()(np.arange(3000))), learned))
    assert {flagged for *_, flagged, label in rows if label} == {True}


# -- the simulator


@pytest.mark.parametrize(("app", "flows"), [("ddos", "parse"), ("comd", "travel")])
def test_the_profile_that_ships_knows_both_applications_of_the_paper(app: str, flows: str) -> None:
    scenario = Scenario(app, app=app, workload="constant:per_second=160,seconds=20", policy="static:replicas=2")
    done = SimulatorPlant(load_profile(None)).simulate(scenario)
    processed = {name: sum(sample.processed for sample in its) for name, its in done.record.series.operators.items()}
    assert processed[flows] == 3200 and processed["store"] > 0
    assert done.events.queued == 0
