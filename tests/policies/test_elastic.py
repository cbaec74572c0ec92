"""The policy that keeps a latency target: in time, cheap, and quiet where nothing changes."""

from dataclasses import replace
from itertools import pairwise

import pytest
from simulations import STORM, TURNS, line, sized

from elastream.control import Guards, Observation, ReplicaObservation, interval_of
from elastream.errors import SettingError
from elastream.policies.elastic import Elastic
from elastream.policies.static import Static
from elastream.simulator.simulate import Simulated
from elastream.testing import observation, operator, source
from elastream.workload import constant, steps


def look(came: int, replicas: int, queued: int = 0, unread: int = 0, lanes: tuple[int, ...] = ()) -> Observation:
    """An eighth of a second of a stream whose tuples take 10 ms; `lanes` have so many waiting each."""
    found = tuple(ReplicaObservation(n, True, 0, 0, waits, 0.0) for n, waits in enumerate(lanes))
    waiting = queued or sum(lanes)
    return observation(
        source("in", came, queued=unread),
        operator(
            "a", {"in": came}, service_ms=10, processed=came, queued=waiting, replicas=replicas, most=32, lanes=found
        ),
        seconds=0.125,
    )


def size_of(policy: Elastic, seen: Observation) -> int:
    return policy.propose(seen).wants[0].replicas


def replica_seconds(run: Simulated) -> float:
    return sum(s.replicas * s.seconds for name in run.record.pools for s in run.record.series.operators[name])


def test_it_decides_eight_times_within_its_target_unless_the_user_says_how_often() -> None:
    assert interval_of(Elastic(latency_s=2.0), None) == 0.25
    assert interval_of(Elastic(latency_s=2.0), 10.0) == 10.0
    assert interval_of(Elastic(latency_s=2.0), 0.1) == 0.1
    assert interval_of(Static(2), None) == interval_of(None, None) == 5.0
    assert interval_of(Static(2), None, default_s=1.0) == 1.0
    assert interval_of(Static(2), 3.0) == interval_of(None, 3.0) == 3.0
    with pytest.raises(SettingError, match="'elastic': latency_s must be more than 0, got 0"):
        Elastic(latency_s=0.0)


def test_it_grows_at_the_first_look_at_which_tuples_would_be_late_and_to_what_keeps_up() -> None:
    policy = Elastic()
    assert [size_of(policy, look(50, 5)) for _ in range(24)] == [5] * 24
    # Four times as many come. Five replicas serve 400 tuples in 0.87 s, the time that is aimed at: 300 may wait.
    assert size_of(policy, look(200, 5, queued=150)) == 5
    assert size_of(policy, look(200, 5, queued=300)) == 5
    # 1,600 tuples per second take 17.4 replicas; what waits takes 5.7 for now, so it is a few less at first.
    assert size_of(policy, look(200, 5, queued=450)) == 15


def test_what_a_source_has_not_read_yet_waits_too() -> None:
    policy = Elastic()
    assert size_of(policy, look(50, 5)) == 5
    assert size_of(policy, look(50, 5, unread=450)) > 5


def test_a_surplus_is_given_up_the_sooner_the_larger_it_is_and_never_while_a_backlog_waits() -> None:
    def looks_until_it_shrinks(replicas: int, queued: int = 0) -> int:
        policy = Elastic()
        found = (n for n in range(1, 99) if size_of(policy, look(50, replicas, queued=queued)) < replicas)
        return next(found, 99)

    # The input takes 4.35 replicas, with some room 5. A rescale of 16 is worth 5.8 idle replica seconds, one of 6 is worth 2.2.
    assert looks_until_it_shrinks(16) == 8
    assert looks_until_it_shrinks(6) == 32
    assert looks_until_it_shrinks(16, queued=16 * 22) == 99


def test_tuples_that_are_stuck_in_few_lanes_call_for_no_replicas() -> None:
    policy = Elastic()
    for _ in range(24):
        assert size_of(policy, look(50, 5)) == 5
    even, uneven = (100,) * 5, (250, 250, 0, 0, 0)
    assert size_of(policy, look(50, 5, lanes=uneven)) == 5
    assert size_of(policy, look(50, 5, lanes=even)) > 5


def test_tuples_that_move_with_their_keys_are_helped_in_whichever_lane_they_wait() -> None:
    policy = Elastic()
    for _ in range(24):
        policy.propose(look(50, 5))
    seen = look(50, 5, lanes=(250, 250, 0, 0, 0))
    by_key = {name: replace(its, by_key=True) for name, its in seen.operators.items()}
    assert size_of(policy, replace(seen, operators=by_key)) > 5


def test_the_same_observations_give_the_same_proposals() -> None:
    seen = [look(50 + 37 * (n % 5), 5, queued=53 * n % 900) for n in range(40)]
    one, other = Elastic(), Elastic()
    assert [one.propose(its) for its in seen] == [other.propose(its) for its in seen]


def test_a_constant_rate_is_rescaled_at_most_once_in_ten_intervals_and_an_idle_stream_never() -> None:
    calm = sized(line(constant(500, 120), pool=16), Elastic(), TURNS, seconds=130.0)
    assert calm.record.latencies.within(1.0) >= 0.99
    assert calm.record.rescales.total / len(calm.record.pools) <= 120 / 1.0 / 10
    idle = sized(line(constant(1, 60), pool=16), Elastic(), TURNS, seconds=70.0)
    assert idle.record.rescales.total == 0


def test_a_stream_that_jumps_is_in_time_for_little_more_than_its_work() -> None:
    arrivals = steps([200, 900, 300, 1200, 200], 150.0)
    run = sized(line(arrivals, pool=24), Elastic(), STORM, seconds=160.0)
    assert run.record.latencies.within(1.0) >= 0.99
    work_s = arrivals.total * 0.01 * 2
    assert work_s < replica_seconds(run) < 1.2 * work_s
    grown = [(a.operator, b.t_s - a.t_s) for a, b in pairwise(run.record.rescales) if a.operator == b.operator]
    assert all(seconds > 0.2 for _, seconds in grown)
    assert "that wait in time" in run.record.rescales[0].reason


def test_guards_need_not_leave_it_a_slack() -> None:
    model = line(steps([900, 440], 60.0), length=1, pool=16)
    ends = [
        sized(model, Elastic(), STORM, seconds=60.0, guards=Guards(slack=slack))
        .record.series.operators["op0"][-2]
        .replicas
        for slack in (0.0, 0.5)
    ]
    assert ends[0] == ends[1] <= 6


def look_at_two(came: int, replicas: tuple[int, int], queued: tuple[int, int] = (0, 0)) -> Observation:
    """An eighth of a second of a stream through two operators whose tuples take 10 ms each."""
    first, second = (
        operator(name, {before: came}, service_ms=10, processed=came, queued=waits, replicas=size, most=32)
        for name, before, size, waits in zip("ab", ("in", "a"), replicas, queued, strict=True)
    )
    return observation(source("in", came), first, second, seconds=0.125)


def sizes_of(policy: Elastic, seen: Observation) -> list[int]:
    return [want.replicas for want in policy.propose(seen).wants]


def test_what_makes_one_operator_late_makes_those_behind_it_grow_at_the_same_moment() -> None:
    policy = Elastic()
    for _ in range(24):
        assert sizes_of(policy, look_at_two(50, (5, 5))) == [5, 5]
    # All of it waits for the first; the second has done nothing yet and grows with it.
    policy.propose(look_at_two(200, (5, 5), (150, 0)))
    first, second = sizes_of(policy, look_at_two(200, (5, 5), (300, 0)))
    assert first > 10 and second > 10
    # One that has enough already is left alone.
    policy = Elastic()
    for _ in range(24):
        policy.propose(look_at_two(50, (5, 20)))
    policy.propose(look_at_two(200, (5, 20), (150, 0)))
    assert sizes_of(policy, look_at_two(200, (5, 20), (300, 0)))[1] == 20


def test_operators_give_up_what_is_idle_together_and_one_with_much_of_it_alone() -> None:
    def looks_until_it_shrinks(replicas: tuple[int, int], queued: tuple[int, int] = (0, 0)) -> tuple[int, list[int]]:
        policy = Elastic()
        for number in range(1, 99):
            sizes = sizes_of(policy, look_at_two(50, replicas, queued))
            if sizes != list(replicas):
                return number, sizes
        return 99, []

    # The input takes 5 of each. Rescales of 11 and 5 replicas are worth 4.0 and 1.8 idle replica seconds: 12 and 6 idle ones are enough.
    assert looks_until_it_shrinks((11, 11)) == (8, [5, 5])
    assert looks_until_it_shrinks((11, 5)) == (8, [5, 5])
    # The second is busy and has none to give: 11 idle ones of the first pay for both after two seconds, and the second keeps what it has.
    number, sizes = looks_until_it_shrinks((16, 16), (0, 400))
    assert number == 16 and sizes == [5, 16]
