"""The simulator: nothing is lost in it, the fast one agrees with the exact one, and the same seed gives the same run."""

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from simulations import STORM, TURNS, WAITS, line, sized, waiting

from elastream import groupings, rules
from elastream.cli.main import main
from elastream.codec import encode, to_plain
from elastream.control import Guards, Observation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.report import make_report
from elastream.simulator import engine_planning
from elastream.simulator.cluster import Cluster
from elastream.simulator.containers import Startup
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Failure, Fidelity
from elastream.simulator.model import Node
from elastream.simulator.profile import load_profile, parse_profile
from elastream.simulator.simulate import Simulated
from elastream.simulator.state import Limits
from elastream.topology import Grouping
from elastream.workload import constant, steps
from elastream_lab.rivals.oracle import Oracle

PATIENT = settings(deadline=None, max_examples=15, derandomize=True, phases=[Phase.generate])

GROUPINGS = (groupings.shuffle, groupings.load_balancing, groupings.least_loaded)
REDIRECTED = (groupings.redirection(), groupings.redirection("id"))
CLUSTERS = (
    Cluster(startup=Startup(0.1, 1.0, 3.0, threads_per_process=1, process_gb=8.0, machines=1), crowding=0.05),
    Cluster(
        failures=(Failure("machine", 0, 3.0, 4.0), Failure("process", 1, 4.0, 1.0), Failure("thread", 0, 8.0, 2.0))
    ),
)
BOUNDS = (Limits(0, False, 0.0), Limits(50, True, 0.0), Limits(50, False, 0.0), Limits(0, False, 1.5))


@PATIENT
@given(
    rates=st.lists(st.integers(20, 600), min_size=1, max_size=4),
    length=st.integers(1, 4),
    pool=st.integers(1, 8),
    grouping=st.sampled_from([*GROUPINGS, groupings.all_, groupings.global_, groupings.fields("id"), *REDIRECTED]),
    shares=st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), max_size=4),
    bounds=st.sampled_from(BOUNDS),
    policy=st.sampled_from(["psps", "static:replicas=3", "ds2", "dabs", "threshold", "dr-stream", "storm-default"]),
    system=st.sampled_from([TURNS, STORM]),
    fidelity=st.sampled_from([Fidelity, Events]),
    cluster=st.sampled_from(CLUSTERS),
    seed=st.integers(0, 5),
)
def test_every_tuple_is_somewhere(
    rates: list[int],
    length: int,
    pool: int,
    grouping: Grouping,
    shares: list[float],
    bounds: Limits,
    policy: str,
    system: Any,
    fidelity: Any,
    cluster: Cluster,
    seed: int,
) -> None:
    times = replace(WAITS, spread=0.3)
    model = line(
        steps(rates, 12.0),
        length=length,
        pool=pool,
        grouping=grouping,
        shares=tuple(shares),
        times=times,
        nodes=(Node(8),) * 3,
    )
    run = sized(model, policy, system, fidelity, limits=bounds, seed=seed, seconds=25.0, cluster=cluster)
    events = run.events
    assert events.entered == events.finished + events.dropped + events.queued
    assert min(events.entered, events.finished, events.dropped, events.queued) >= 0
    samples = [sample for its in run.record.series.operators.values() for sample in its]
    assert sum(sample.entered for sample in samples) == events.entered
    assert sum(sample.finished for sample in samples) == events.finished
    assert all(sample.queued >= 0 for sample in samples)
    assert all(
        1 <= sample.replicas <= pool for name in run.record.pools for sample in run.record.series.operators[name]
    )


def both(low: int, high: int, length: int, pool: int, grouping: Grouping, share: float) -> tuple[Simulated, Simulated]:
    model = line(steps([low, high, low], 15.0), length=length, pool=pool, grouping=grouping, shares=(share,) * length)
    policy = f"static:replicas={pool}"
    return sized(model, policy, seconds=15.0), sized(model, policy, fidelity=Events, seconds=15.0)


@PATIENT
@given(
    low=st.integers(50, 200),
    high=st.integers(300, 600),
    length=st.integers(1, 4),
    pool=st.integers(2, 6),
    grouping=st.sampled_from([groupings.shuffle, groupings.least_loaded]),
    share=st.sampled_from([0.5, 1.0]),
)
def test_the_fast_simulation_has_the_queues_of_the_exact_one(
    low: int, high: int, length: int, pool: int, grouping: Grouping, share: float
) -> None:
    fast, exact = both(low, high, length, pool, grouping, share)
    # To two per cent; where next to nothing waits, to a tuple a replica.
    assert waiting(fast) == pytest.approx(waiting(exact), rel=0.02, abs=pool * length)
    # Paces may fall in step in one of them and not in the other.
    assert fast.record.latencies.mean_s == pytest.approx(exact.record.latencies.mean_s, rel=0.08, abs=0.01)


@pytest.mark.parametrize(("low", "high", "length", "pool"), [(150, 500, 3, 4), (60, 450, 2, 2), (80, 600, 1, 3)])
def test_with_load_balancing_the_two_agree_when_much_waits(low: int, high: int, length: int, pool: int) -> None:
    # One choice leads to the next, and the two may come to different ones: the more so, the longer the line.
    fast, exact = both(low, high, length, pool, groupings.load_balancing, 1.0)
    assert waiting(fast) == pytest.approx(waiting(exact), rel=0.1 * length)


@PATIENT
@given(low=st.integers(50, 200), high=st.integers(350, 600), pool=st.integers(1, 3), length=st.integers(1, 3))
def test_the_fast_steps_have_the_queues_of_discrete_events(low: int, high: int, pool: int, length: int) -> None:
    model = line(steps([low, high, low], 30.0), length=length, pool=pool)
    fast = sized(model, f"static:replicas={pool}", STORM, seconds=30.0)
    exact = sized(model, f"static:replicas={pool}", STORM, Events, seconds=30.0)
    # In service at any moment: up to one tuple a replica.
    assert waiting(fast) == pytest.approx(waiting(exact), rel=0.02, abs=pool * length)


@pytest.mark.parametrize("system", [TURNS, STORM])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_the_same_seed_gives_the_same_run_to_the_byte(system: Any, fidelity: Any) -> None:
    model = line(steps([100, 400, 100], 20.0), times=replace(WAITS, spread=0.5))

    def document(seed: int) -> str:
        run = sized(model, "psps", system, fidelity, seed=seed)
        return json.dumps(make_report(run.record, run.events), sort_keys=True)

    assert document(7) == document(7)
    assert document(7) != document(8)


def test_a_busy_replica_of_the_engine_serves_nearly_all_of_its_time() -> None:
    # Between two works of 50 ms there are a turn of the driver, the way to it and back, and what a work costs.
    for fidelity in (Fidelity, Events):
        run = sized(line(constant(400, 60.0), length=1, pool=1), "static:replicas=1", TURNS, fidelity, seconds=60.0)
        served = sum(sample.processed for sample in run.record.series.operators["op0"])
        assert 94 < served / 60 < 99


def test_a_slow_driver_makes_works_longer_and_replicas_no_slower() -> None:
    model = line(constant(400, 60.0), length=1, pool=2)
    slow = TURNS._replace(turn_s=0.02)
    quick, slower = (sized(model, "static:replicas=2", system, seconds=60.0) for system in (TURNS, slow))
    assert slower.ticks < quick.ticks / 5
    assert slower.events.finished > 0.8 * quick.events.finished


def test_a_record_at_a_time_replica_is_busy_all_the_time() -> None:
    for fidelity in (Fidelity, Events):
        run = sized(line(constant(400, 60.0), length=1, pool=2), "static:replicas=2", STORM, fidelity, seconds=60.0)
        served = sum(sample.processed for sample in run.record.series.operators["op0"])
        assert served / 60 == pytest.approx(200, rel=0.01)


def test_psps_sizes_a_simulated_stream_and_loses_nothing() -> None:
    run = sized(line(steps([50, 400, 50], 90.0)), "psps")
    sizes = [sample.replicas for sample in run.record.series.operators["op0"]]
    assert min(sizes) == 1 and max(sizes) >= 6
    assert run.events.finished == run.events.entered and not run.events.queued
    assert "will arrive" in run.record.rescales[0].reason


def test_the_clairvoyant_keeps_its_limit_with_the_least_replica_seconds() -> None:
    arrivals = steps([60, 500, 60, 300, 60], 150.0)
    model = line(arrivals, pool=12)

    def done(word: str) -> tuple[float, float]:
        policy = make_policy(word)
        policy.foresee((arrivals,))
        run = sized(model, policy, STORM, guards=Guards(slack=0.0))
        assert run.events.finished == run.events.entered
        seconds = sum(
            sample.replicas * sample.seconds
            for name in run.record.pools
            for sample in run.record.series.operators[name]
        )
        return seconds, run.record.latencies.percentile_s(0.99)

    best, waits_s = done("oracle:latency_s=2")
    # What a percentile is known to, and what an interval allows.
    assert waits_s <= 2.5
    for other in ("psps", "ds2", "threshold", "static:replicas=12"):
        seconds, waited_s = done(other)
        # Whoever takes fewer replica seconds breaks the limit.
        assert seconds >= 0.98 * best or waited_s > 2.0, other
    with pytest.raises(SettingError, match="latency_s must be more than 0"):
        make_policy("oracle:latency_s=0")


class Scripted(Policy):
    """So many replicas in each interval."""

    name = "scripted"
    start = None

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = list(sizes)

    def propose(self, seen: Observation) -> Proposal:
        size = self._sizes.pop(0) if self._sizes else 1
        return Proposal(tuple(Want(o.operator, size, "as written") for o in seen.scalable()))


def test_of_all_ways_to_size_a_short_run_the_best_is_hardly_better_than_the_clairvoyants() -> None:
    arrivals = steps([40, 40, 240, 240, 120, 40], 12.0)
    # It takes what waits for an operator as one queue: so the lanes must be evenly full.
    model = line(arrivals, length=1, pool=3, grouping=groupings.least_loaded)

    def done(policy: Any) -> tuple[float, float]:
        run = sized(model, policy, STORM._replace(step_s=0.005), guards=Guards(slack=0.0), seconds=20.0)
        samples = run.record.series.operators["op0"]
        return sum(sample.replicas * sample.seconds for sample in samples), run.record.latencies.max_s

    oracle = Oracle(latency_s=1.5)
    oracle.foresee((arrivals,))
    best, waits_s = done(oracle)
    assert waits_s <= 1.5
    # The first interval is over before anybody can decide with knowledge of the service time.
    ways = [done(Scripted((1, *sizes))) for sizes in product((1, 2, 3), repeat=5)]
    least = min(seconds for seconds, waited_s in ways if waited_s <= 1.5)
    # It looks at one interval after another: by at most one replica in one of them.
    assert best <= least + 2.0 + 0.05


def test_memory_does_not_grow_with_the_length_of_a_run() -> None:
    def peak(seconds: float) -> int:
        """Bytes that a run takes at most, of a stream that rises and falls forty times."""
        model = line(steps([50, 400] * 40, seconds), length=1, pool=8)
        tracemalloc.start()
        run = sized(model, "psps", TURNS, seconds=seconds)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert run.record.rescales.total >= 3 and run.record.tick_ms.total > seconds / 10
        return most

    with pytest.MonkeyPatch.context() as patch:
        # So that the bounds are reached in seconds and not in hours.
        patch.setattr("elastream.report.record.MOST_KEPT", 100)
        patch.setattr("elastream.simulator.simulate.MOST_EACH", 200)
        peak(1000.0)
        assert peak(10_000.0) < 1.5 * peak(2000.0)


def test_simulate_writes_the_report_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "tweets", "--trace", "steps:rates=50/300/50,seconds=60", "--service-ms", "5", "--td", "2"]
    assert main([*words, "--seed", "3", "--report", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["events"]["finished"] == document["events"]["entered"] == 8000
    assert document["rescales"] > 0 and document["ai_sps"]["index"] is not None
    assert {path.name for path in tmp_path.iterdir()} >= {"report.json", "series.parquet", "report.html"}
    other = tmp_path / "other"
    subprocess.run(
        [sys.executable, "-m", "elastream.cli.main", *words, "--seed", "3", "--report", str(other)], check=True
    )
    for name in ("report.json", "series.parquet", "latency.parquet", "report.html", "report.png"):
        assert (other / name).read_bytes() == (tmp_path / name).read_bytes(), f"{name} differs in another process"
    three = tmp_path / "three.yaml"
    three.write_text("nodes: [{count: 3, cores: 2}]\n")
    assert main([*words, "--system", "storm", "--cluster", str(three), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["latency_ms"]["mean"] < document["latency_ms"]["mean"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a profile"),
        ('{"version": 1}', "of version 1, expected 2; calibrate again"),
        ('{"version": 2, "machine": {}, "apps": {}}', "not a profile"),
    ],
)
def test_a_damaged_profile_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        parse_profile(text, "profile x")


def test_a_profile_says_what_it_does_not_know() -> None:
    profile = load_profile(None)
    with pytest.raises(SettingError, match=r"the profile knows .*tweets.*elastream calibrate mine"):
        profile.times("mine")
    assert parse_profile(encode(profile).decode(), "again") == profile
    bad = to_plain(profile)
    bad["machine"]["cores"] = 0
    with pytest.raises(SettingError, match="cores must be 1 or more"):
        parse_profile(json.dumps(bad), "profile x")


def test_the_model_asks_the_rules_that_the_engine_asks() -> None:
    assert {
        name: function.py_func
        for name, function in vars(engine_planning).items()
        if name in ("budget", "turn_cost", "quota", "next_work_s", "weight", "rest", "shares_work", "fits")
    } == {
        "budget": rules.budget,
        "turn_cost": rules.turn_cost,
        "quota": rules.quota,
        "next_work_s": rules.due_s,
        "weight": rules.weight,
        "rest": rules.rest,
        "shares_work": rules.shares_work,
        "fits": rules.fits,
    }


def test_regret_is_what_a_policy_takes_beyond_the_clairvoyant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "regret", "--plant", "simulator", "--report", str(tmp_path), "--json"]) == 0
    found = {name: its["regret"] for name, its in json.loads(capsys.readouterr().out).items()}
    assert found["oracle"] == 0.0 and found["r = 1"] < 0 < found["PSPS"] < found["r = 8"]
    assert "regret" in (tmp_path / "regret" / "simulated-spark" / "regret.md").read_text()
