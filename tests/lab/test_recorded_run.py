"""A run from its journal: what came when, its operators, how it was, and policies that play it again."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from flows import same
from simulations import line, sized

from elastream import Topology, sources
from elastream.cli.main import main
from elastream.control import (
    Decision,
    Guards,
    HostObservation,
    Journal,
    JournalEntry,
    Observation,
    Proposal,
    read_run,
)
from elastream.errors import SettingError
from elastream.lanes import Store
from elastream.report.latency import Latencies
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import Simulated
from elastream.testing import LocalEngine, observation, operator, source
from elastream.topology import Kind
from elastream.workload import sine
from elastream_lab.bench.tournament.recorded_run import recorded_run
from elastream_lab.bench.tournament.recorded_time import arrivals_of, spans_of

BEGAN_S = 1000.0


def looked(read: int, ended_s: float, *, unread: int = 0, replicas: int = 2, seconds: float = 1.0) -> Observation:
    """One look at a source, an operator of 10 ms and an output; half of what comes is passed on."""
    work = operator("work", {"in": read}, service_ms=10.0, replicas=replicas, least=1, most=6, cpu_share=0.25)
    out = operator("out", {"work": read // 2}, role="output", busy_seconds=0.0)
    arrived = source("in", read, queued=unread, busy_seconds=read * 1e-5)
    return observation(arrived, work, out, ended_s=BEGAN_S + ended_s, seconds=seconds)


def entry(number: int, seen: Observation, after: int | None = None, **more: object) -> JournalEntry:
    size = seen.operators["work"].replicas
    proposal, decision = Proposal(), Decision("work", size, after or size, after or size, "busy")
    return replace(JournalEntry(number, "mine", seen, proposal, (decision,), td_s=1.0), **more)  # type: ignore[arg-type]


def written(base: Path, entries: Iterable[JournalEntry], quiet_s: float = 0.0) -> str:
    journal = Journal(Store(str(base)), quiet_s=quiet_s)
    for one in entries:
        journal.append(one)
    return str(base)


def calm(count: int = 6) -> list[JournalEntry]:
    return [entry(n, looked(100, n + 1.0)) for n in range(count)]


def came(base: str) -> list[tuple[float, float]]:
    """The seconds up to which arrivals are known, and how many there were by then."""
    arrivals = arrivals_of(spans_of(read_run(base, "test"), "test"), 0)
    return [(round(end, 6), round(count, 6)) for end, count in zip(arrivals.ends_s, arrivals.counts, strict=True)]


def test_what_arrived_is_what_was_read_and_what_more_is_unread(tmp_path: Path) -> None:
    unread = [20, 50, 10, 0, 0]
    entries = [entry(n, looked(100, n + 1.0, unread=left)) for n, left in enumerate(unread)]
    base = written(tmp_path, entries)
    # In the third second 100 were read, 40 of which had been there before.
    assert came(base) == [(0.0, 0), (1.0, 120), (2.0, 250), (3.0, 310), (4.0, 400), (5.0, 500)]


def test_looks_that_have_no_entry_of_their_own_are_in_the_trace(tmp_path: Path) -> None:
    rates = [8, 8, 40, 8, 0, 8, 8, 8, 24, 8, 8]
    entries = [entry(n, looked(rate, (n + 1) / 8, seconds=0.125)) for n, rate in enumerate(rates)]
    base = written(tmp_path, entries, quiet_s=1.0)
    kept = read_run(base, "test")
    assert [one.number for one in kept] == [0, 8]
    assert [count for _, count in came(base)] == [0, 8, 16, 56, 64, 64, 72, 80, 88, 112]
    # What came after the last entry that was kept is in no journal.
    assert recorded_run(base).tuples == 112
    assert recorded_run(base).td_s == 1.0


def test_a_journal_that_left_looks_out_is_refused_rather_than_guessed_at(tmp_path: Path) -> None:
    looks = [entry(n, looked(8, (n + 1) / 8, seconds=0.125)) for n in range(0, 80, 8)]
    base = written(tmp_path, looks)
    with pytest.raises(SettingError, match="looks between intervals 0 and 8 are not in its journal"):
        recorded_run(base)


def test_time_without_a_driver_is_cut_out_and_standing_still_is_not(tmp_path: Path) -> None:
    first, later = calm(3), [entry(n, looked(100, n + 8.0, unread=50)) for n in range(3, 6)]
    away = written(tmp_path / "away", [*first, *later])
    assert came(away) == [(0.0, 0), (1.0, 100), (2.0, 200), (3.0, 300), (4.0, 450), (5.0, 550), (6.0, 650)]
    restarts = entry(2, looked(100, 3.0), after=3, paused=True)
    still = written(tmp_path / "still", [*first[:2], restarts, *later])
    assert came(still)[4:] == [(11.0, 450), (12.0, 550), (13.0, 650)]


def test_the_operators_have_their_own_order_times_shares_pools_and_machines(tmp_path: Path) -> None:
    host = HostObservation(0, "alpha", 1.0, 0.5)
    hosts = (host, replace(host, host=1), replace(host, host=2, machine="beta"))
    keyed = replace(looked(100, 1.0).operators["work"], by_key=True)
    entries = []
    for one in calm():
        seen = replace(one.observation, hosts=hosts)
        entries.append(replace(one, observation=replace(seen, operators={**seen.operators, "work": keyed})))
    run = recorded_run(written(tmp_path, entries))
    graph, times = run.application.graph, run.application.times
    assert [(o.name, o.kind) for o in graph.operators] == [
        ("in", Kind.SOURCE),
        ("work", Kind.BATCH),
        ("out", Kind.OUTPUT),
    ]
    assert [(e.source, e.target) for e in graph.edges] == [("in", "work"), ("work", "out")]
    assert graph.reached_by_keys == ("work",)
    assert (graph["work"].replicas.least, graph["work"].replicas.most, graph["work"].replicas.start) == (1, 6, 2)
    assert times["work"] == OperatorTimes(pytest.approx(0.01), pytest.approx(0.25), 0.0, {"out": 0.5})  # type: ignore[arg-type]
    assert times["in"].service_s == pytest.approx(1e-5) and times["in"].shares == {"work": 1.0}
    assert sorted(node.cores for node in run.application.nodes) == [1.0, 2.0]


def test_what_is_chained_to_an_operator_is_part_of_it(tmp_path: Path) -> None:
    entries = []
    for one in calm():
        seen = one.observation
        chained = replace(operator("tail", {"work": 100}), role="chained")
        operators = {"in": seen.operators["in"], "work": seen.operators["work"], "tail": chained}
        entries.append(replace(one, observation=replace(seen, operators=operators | {"out": seen.operators["out"]})))
    graph = recorded_run(written(tmp_path, entries)).application.graph
    assert [o.name for o in graph.operators] == ["in", "work", "out"]
    assert [(e.source, e.target) for e in graph.edges] == [("in", "work"), ("work", "out")]


def test_a_run_is_told_as_it_was_and_what_is_not_known_is_not_told(tmp_path: Path) -> None:
    entries = calm(4)
    entries[1] = entry(1, looked(100, 2.0), after=4)
    entries += [entry(n, looked(100, n + 1.0, replicas=4)) for n in range(4, 6)]
    entries[2:4] = [entry(n, looked(100, n + 1.0, replicas=4)) for n in (2, 3)]
    ran = recorded_run(written(tmp_path / "mean", entries)).as_it_ran
    assert (ran.policy, ran.replica_seconds, ran.rescales, ran.moments) == ("mine", 2 * 2 + 4 * 4, 1, 1)
    assert (ran.mean_s, ran.latencies) == (0.0, None)
    fine = [
        replace(one, observation=replace(one.observation, latency_mean_s=0.5, latencies={90: 45, 97: 5}))
        for one in entries
    ]
    ran = recorded_run(written(tmp_path / "buckets", fine)).as_it_ran
    assert ran.latencies is not None and ran.mean_s == pytest.approx(0.5)
    assert ran.latencies.count == 300
    # Bucket 90 ends at 0.53 s, bucket 97 at 1.03 s.
    assert ran.latencies.within(0.6) == pytest.approx(0.9) and ran.latencies.within(2.0) == 1.0


def test_only_the_last_policy_of_a_base_counts_and_not_the_time_after_all_was_served(tmp_path: Path) -> None:
    others = [replace(one, policy="other") for one in calm(9)]
    mine = [replace(one, number=one.number + 9) for one in calm(6)]
    idle = [entry(n, looked(0, n - 8.0)) for n in range(15, 40)]
    run = recorded_run(written(tmp_path, [*others, *mine, *idle]))
    assert (run.as_it_ran.policy, run.tuples, run.seconds) == ("mine", 600, 6.0)


def test_guards_are_the_runs_but_others_may_do_what_it_could_only_advise(tmp_path: Path) -> None:
    guards = Guards(cooldown_s=7.0, dry_run=True)
    run = recorded_run(written(tmp_path, [replace(one, guards=guards) for one in calm()]))
    assert run.guards == Guards(cooldown_s=7.0)


def test_a_run_that_cannot_be_played_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(base: str, *more: str) -> str:
        assert main(["tournament", "psps", "--run", base, "--report", str(tmp_path / "report"), *more]) == 2
        return capsys.readouterr().err

    assert "no such directory; name the base directory of a run" in refused(str(tmp_path / "nowhere"))
    assert "no journal there; it is written by runs with --policy" in refused(str(tmp_path))
    short = written(tmp_path / "short", calm(3))
    assert "expected a journal of 5 intervals or more, got 3; let it run for longer" in refused(short)
    stuck = replace(looked(0, 1.0), queued=5)
    dry = written(tmp_path / "dry", [entry(n, replace(stuck, ended_s=BEGAN_S + n)) for n in range(6)])
    assert "nothing came in, so there is nothing to play" in refused(dry)
    whole = written(tmp_path / "whole", calm())
    assert "--pool is for traces; leave it out, a run has its own" in refused(whole, "--pool", "3")
    assert "expected runs, each once" in refused(whole, "--run", whole)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Simulated]:
    """A simulated run of PSPS, written down as a run on Spark is; the first operator passes half on."""
    base = tmp_path_factory.mktemp("recorded")
    journal = Journal(Store(str(base)))
    model = line(sine(low=50, high=400, period_s=20, seconds=60), shares=(0.5,))
    return str(base), sized(model, "psps", on_entry=journal.append)


def test_a_journal_gives_back_the_model_that_it_was_made_by(recorded: tuple[str, Simulated]) -> None:
    base, done = recorded
    run = recorded_run(base)
    assert run.tuples == pytest.approx(done.events.entered, rel=0.01)
    assert {name: round(run.application.times[name].service_s, 4) for name in ("op0", "op1")} == {
        "op0": 0.01,
        "op1": 0.01,
    }
    assert run.application.times["op0"].shares["op1"] == pytest.approx(0.5, abs=0.01)
    samples = [s for its in ("op0", "op1") for s in done.record.series.operators[its]]
    measured = sum(s.replicas * s.seconds for s in samples)
    assert run.as_it_ran.replica_seconds == pytest.approx(measured, rel=0.03)
    ran: Latencies | None = run.as_it_ran.latencies
    assert ran is not None and ran.percentile_s(0.95) == pytest.approx(
        done.record.latencies.percentile_s(0.95), rel=0.1
    )


def test_the_policy_of_a_run_that_plays_it_again_does_as_it_did(
    recorded: tuple[str, Simulated], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, _ = recorded
    words = ["tournament", "psps", "static:replicas=8", "--run", base, "--latency", "2", "--jobs", "1"]
    assert main([*words, "--report", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {one["policy"]: one for one in document["entries"]}
    assert list(found) == ["oracle", "psps", "static:replicas=8", "as it ran: psps"]
    ran, again = found["as it ran: psps"], found["psps"]
    assert again["replica_seconds"] == pytest.approx(ran["replica_seconds"], rel=0.05)
    assert again["mean_ms"] == pytest.approx(ran["mean_ms"], rel=0.25)
    assert abs(again["moments"] - ran["moments"]) <= 6 and ran["moments"] <= ran["rescales"]
    assert ran["index"] is None and 0.5 < ran["within"] <= 1.0
    assert found["oracle"]["ratio"] == 1.0 < ran["ratio"] < found["static:replicas=8"]["ratio"]
    assert document["contest"]["runs"][0]["td_s"] == 2.0
    folder = tmp_path / "simulated-spark"
    assert "| as it ran: psps |" in (folder / "tournament.md").read_text()
    assert f"as it ran: psps on {base}" in (folder / "tournament.html").read_text()


def test_the_engine_writes_down_all_that_comes_in_while_its_policy_looks_often(tmp_path: Path) -> None:
    flow = Topology("flow")
    flow.source("in", sources.replay(sine(low=20, high=100, period_s=10, seconds=40)))
    flow.map("same", same, after="in", replicas=(1, 4)).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path), policy="elastic") as handle:
        handle.await_end(60)
    kept = read_run(str(tmp_path), "test")
    assert sum(len(one.looks) for one in kept) > 10 * len(kept)
    run = recorded_run(str(tmp_path))
    # Of 60 per second those of the first look, and of the last five seconds, may be missing.
    assert 2400 - 5.5 * 100 <= run.tuples <= 2400
    assert run.tuples == pytest.approx(run.as_it_ran.finished, abs=30)
    assert run.as_it_ran.latencies is not None and run.as_it_ran.latencies.count == run.as_it_ran.finished
    assert kept[-1].own_pace and kept[-1].td_s == 0.125
    # Policies without a pace of their own decide as often as they do by default.
    assert run.td_s == 5.0
