"""The simulation: seeds without a violation, the same history for the same seed, and defects that are found."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from elastream.cli.main import main
from elastream.errors import SettingError
from elastream.lanes.queues import LaneQueue
from elastream.lanes.state_sums import GroupSums
from elastream.state.host_state import StateChanges
from elastream.testing.simulation import Scenario, draw_scenario, simulate
from elastream.testing.simulation.actions import ACTIONS
from elastream.testing.simulation.command import replay_command, run_seeds
from elastream.testing.simulation.constants import CHOICES, shrunk
from elastream.testing.simulation.faults import KINDS, Fault
from elastream.testing.simulation.scheduler import Killed, Process, Scheduler
from elastream.testing.simulation.shrink import Reduction, Shrinker, read_reduction

FIRST = int(os.environ.get("ELASTREAM_FIRST_SEED", int(time.time() // 3600) * 100))
"""Of the seeds that nobody has seen before; others every hour."""

SEEDS = [*range(25), *range(FIRST, FIRST + 25)]
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_no_seed_violates_an_invariant(part: int) -> None:
    failed = []
    for seed in SEEDS[part::PARTS]:
        outcome = simulate(draw_scenario(seed))
        if outcome.violation is not None:
            failed.append(f"{replay_command(seed)} --shrink: {outcome.violation}")
    assert failed == []


def test_a_seed_is_a_history() -> None:
    first, second = simulate(draw_scenario(3)), simulate(draw_scenario(3))
    assert first.history == second.history and first.works > 10
    assert simulate(draw_scenario(4)).digest != first.digest


def test_a_seed_is_the_same_history_in_another_process() -> None:
    for seed in (3, 11):
        command = [sys.executable, "-m", "elastream.cli.main", "chaos", "--simulated", "--seed", str(seed), "--json"]
        environment = {**os.environ, "PYTHONHASHSEED": "12345"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert json.loads(done.stdout)["digest"] == simulate(draw_scenario(seed)).digest, done.stderr


def calm(seed: int) -> Scenario:
    return replace(draw_scenario(seed), faults=())


def first_violation(scenarios: Any) -> str:
    return next((violation for scenario in scenarios if (violation := simulate(scenario).violation) is not None), "")


def forgetting(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    """Hosts do not keep what a work changed if it changed so many keys, and say that they do."""
    apply = StateChanges.apply

    def forgets(self: StateChanges) -> dict[int, GroupSums]:
        if len(self._changed) < least:
            return apply(self)
        groups = sorted({group for group, _ in self._changed})
        return {group: GroupSums(now, now) for group, now in zip(groups, self._checksums(groups), strict=True)}

    monkeypatch.setattr(StateChanges, "apply", forgets)


def test_states_that_a_host_does_not_keep_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetting(monkeypatch, 3)
    assert "does not know what the entries say" in first_violation(map(calm, range(20)))


def test_tuples_that_a_move_brings_out_of_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    give_up = LaneQueue.give_up
    monkeypatch.setattr(LaneQueue, "give_up", lambda self, groups: give_up(self, groups)[::-1])
    scenarios = (replace(calm(seed), faults=moves(seed)) for seed in range(40))
    assert first_violation(scenarios)


def moves(seed: int) -> tuple[Fault, ...]:
    return tuple(Fault(0.3 + n / 10, "move groups", 0.5, n % 3 / 9, n % 2 * 0.9) for n in range(20))


def test_receipts_that_come_twice_count_once() -> None:
    twice = (Fault(0.0, "repeat receipts", 0.9, 0.0, 0.0), Fault(0.5, "repeat receipts", 0.9, 0.0, 0.0))
    assert first_violation(replace(calm(seed), faults=twice) for seed in range(8)) == ""


def tuples_of(scenario: Scenario) -> int:
    return sum(feed.tuples for feed in scenario.workload.feeds)


def test_a_failing_seed_is_made_smaller_and_replayed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetting(monkeypatch, 2)
    seed = next(s for s in range(20) if draw_scenario(s).faults and simulate(draw_scenario(s)).violation)
    said: list[str] = []
    shrinker = Shrinker(seed, said.append)
    whole = shrinker.outcome
    smallest = shrinker.shrink()
    assert smallest.violation is not None and said
    # Its history may be longer: with fewer tuples it takes longer until the defect shows.
    assert len(smallest.scenario.faults) < len(whole.scenario.faults)
    assert tuples_of(smallest.scenario) < tuples_of(whole.scenario)
    again = simulate(read_reduction(str(shrinker.reduction)).of(seed))
    assert again.digest == smallest.digest


def test_what_a_reduction_leaves_is_read_as_it_is_written() -> None:
    reduction = Reduction((1, 5), 20, (0,), ())
    assert read_reduction(str(reduction)) == reduction
    with pytest.raises(SettingError, match="expected faults="):
        read_reduction("faults=a")


def test_every_kind_of_fault_does_something() -> None:
    assert set(ACTIONS) == set(KINDS)


def test_constants_are_as_in_production_afterwards() -> None:
    from elastream import rules

    before = rules.MOST_CHANGES
    with shrunk({"elastream.rules:MOST_CHANGES": 3}):
        assert rules.MOST_CHANGES == 3
    assert rules.MOST_CHANGES == before == CHOICES["elastream.rules:MOST_CHANGES"][0]


def test_strands_take_turns_in_virtual_time_and_the_dead_do_nothing() -> None:
    scheduler, seen = Scheduler(), []
    one, other = Process(scheduler, "one"), Process(scheduler, "other")

    def steps(name: str, seconds: float) -> None:
        for _ in range(3):
            scheduler.pause(seconds)
            seen.append((name, scheduler.now))

    one.spawn(lambda: steps("one", 1.0))
    other.spawn(lambda: steps("other", 1.5))
    scheduler.after(3.2, other.kill)
    scheduler.run()
    scheduler.close()
    assert seen == [("one", 1.0), ("other", 1.5), ("one", 2.0), ("other", 3.0), ("one", 3.0)] or seen == [
        ("one", 1.0),
        ("other", 1.5),
        ("one", 2.0),
        ("one", 3.0),
        ("other", 3.0),
    ]
    with pytest.raises(Killed):
        other.check()


def test_many_seeds_are_run_in_processes_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    tally = run_seeds(0, 4, 2, print)
    assert tally.seeds == 4 and tally.works > 40 and tally.entries > 40 and tally.virtual_s > 1
    assert main(["chaos", "--simulated", "--shrink"]) == 2
    assert "add --seed N" in capsys.readouterr().err
