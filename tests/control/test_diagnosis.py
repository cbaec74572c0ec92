"""The verdict on an interval: which operator is the bottleneck, and where latency arises."""

from dataclasses import replace

from elastream.control import Decision, Guards, HostObservation
from elastream.control.diagnosis import Verdicts, diagnose
from elastream.control.guard import History
from elastream.control.plan import plan
from elastream.policies.elastic import Elastic
from elastream.testing import observation, operator, source


def test_an_operator_whose_limit_a_guard_keeps_is_the_bottleneck_and_the_verdict_says_what_it_wants() -> None:
    seen = observation(
        source("in", 900),
        operator("parse", {"in": 900}, service_ms=1),
        operator("enrich", {"parse": 900}, service_ms=10, processed=400, queued=1000, replicas=4, most=4),
    )
    decision = Decision("enrich", 4, 9, 4, "900 will arrive", ("limits: 1..4 replicas",))
    diagnosis = diagnose(seen, [decision])
    assert diagnosis.bottleneck == "enrich"
    assert diagnosis.verdict == "enrich is the bottleneck: 4 of 4 replicas, wants 9 (limit), tuples wait 2.5 s"


def test_a_saturated_operator_is_busy_although_its_replicas_share_too_few_cores() -> None:
    # Four replicas in two hosts: each gets half of the time, and is busy for that half only.
    seen = observation(
        source("in", 400),
        operator("a", {"in": 400}, service_ms=10, processed=200, queued=600, replicas=4, most=8),
    )
    seen = replace(seen, hosts=(HostObservation(0, "m", 1.0, 0.99), HostObservation(1, "m", 1.0, 0.97)))
    diagnosis = diagnose(seen)
    assert diagnosis.operators["a"].busy == 1.0 and diagnosis.operators["a"].wait_s == 3.0
    assert diagnosis.verdict == "a is the bottleneck: 4 of 8 replicas, tuples wait 3.0 s, all hosts are busy"


def test_full_queues_before_a_slow_operator_do_not_make_the_one_before_it_the_bottleneck() -> None:
    # Bounded queues: both are full, and the same number of tuples passes both.
    seen = observation(
        source("in", 100),
        operator("quick", {"in": 100}, service_ms=1, queued=500),
        operator("slow", {"quick": 100}, service_ms=10, queued=500),
    )
    assert diagnose(seen).bottleneck == "slow"


def test_a_run_that_keeps_up_says_where_its_latency_arises() -> None:
    seen = observation(
        source("in", 100),
        operator("quick", {"in": 100}, service_ms=1),
        operator("slow", {"quick": 100}, service_ms=5, queued=8),
    )
    seen = replace(seen, latency_mean_s=0.095)
    assert diagnose(seen).verdict == "keeps up: latency 95 ms, most of it at slow (80 ms waiting + 5 ms service)"


def test_a_source_that_nobody_reads_fast_enough_falls_behind() -> None:
    seen = observation(source("clicks", 100, queued=5000), operator("a", {"clicks": 100}))
    assert diagnose(seen).verdict == "source clicks falls behind: 5,000 tuples are not read"


def test_latency_of_an_old_backlog_is_no_sign_of_a_bottleneck() -> None:
    seen = replace(observation(source("in", 100), operator("a", {"in": 100}, queued=5)), latency_mean_s=4.0)
    assert diagnose(seen).verdict == "catches up: latency 4.0 s, and the queues are short again"


def test_the_verdict_on_a_run_names_the_operator_that_was_the_bottleneck_longest() -> None:
    calm = observation(source("in", 10), operator("a", {"in": 10}), operator("b", {"a": 10}))
    full = observation(source("in", 10), operator("a", {"in": 10}, queued=40, most=2), operator("b", {"a": 10}))
    verdicts = Verdicts()
    for seen in (calm, full, full, full, calm):
        verdicts.add(seen)
    assert verdicts.summary() == "a for 3 of 5 s; at the worst 1 of 2 replicas, tuples wait 4.0 s"
    assert Verdicts().summary() == ""


def test_elastic_states_its_want_beyond_the_limit_and_the_guard_clips_it() -> None:
    policy, history = Elastic(), History()
    for _ in range(16):
        seen = observation(
            source("in", 50),
            operator("a", {"in": 50}, service_ms=10, processed=25, queued=400, replicas=2, most=2),
            seconds=0.125,
        )
        (decision,) = plan(seen, policy.propose(seen), Guards(), history).decisions
    # 400 tuples per second take 4.3 replicas, and what waits takes more.
    assert decision.after == decision.before == 2 and decision.asked >= 5
    assert decision.vetoes == ("limits: 1..2 replicas",)


def test_elastic_wants_no_more_than_its_limit_if_that_is_enough() -> None:
    policy, history = Elastic(), History()
    for _ in range(16):
        seen = observation(
            source("in", 10), operator("a", {"in": 10}, service_ms=10, replicas=2, most=2), seconds=0.125
        )
        decisions = plan(seen, policy.propose(seen), Guards(), history).decisions
        assert [(d.asked, d.vetoes) for d in decisions] == [(d.after, ()) for d in decisions]
