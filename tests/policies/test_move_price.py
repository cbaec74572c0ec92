"""Elastic on operators whose keys choose the replica: a change has a price, so a noisy load is no reason for many of them."""

from dataclasses import replace
from hashlib import sha256
from math import sin
from random import Random

import pytest
from noisy_plant import Load, Played, play

from elastream.control import Observation, StateMoved
from elastream.policies.elastic import Elastic
from elastream.policies.move_price import MOST_DOUBLED, MOVE_WORTH, MovePrice
from elastream.testing import observation, operator, source

SEEDS = range(1, 9)


def share_in_time(played: Played) -> float:
    return played.in_time / played.finished


@pytest.mark.parametrize(
    ("load", "move_s", "in_time"),
    [
        (Load(), 0.05, 0.999),
        (Load(), 0.3, 0.97),
        (Load(noise=0.1, busy=0.1), 0.3, 0.999),
        (Load(per_second=80.0), 0.05, 0.99),
    ],
)
def test_a_noisy_stationary_load_moves_keys_at_most_six_times_in_two_minutes(
    load: Load, move_s: float, in_time: float
) -> None:
    for seed in SEEDS:
        played = play(Elastic(), load, seed=seed, move_s=move_s)
        assert played.rescales <= 6, seed
        assert share_in_time(played) >= in_time, seed


def test_without_keys_it_follows_the_same_noise_as_before() -> None:
    # This is the figure without a price: idle replicas cost more than changes that move nothing.
    assert min(play(Elastic(), Load(), seed=seed, by_key=False).rescales for seed in SEEDS) >= 25


def look(came: int, replicas: int, queued: int = 0, moved_ms: float = 0.0) -> Observation:
    """An eighth of a second of a keyed operator whose tuples take 10 ms."""
    seen = observation(
        source("in", came),
        operator("a", {"in": came}, service_ms=10, queued=queued, replicas=replicas, most=32, by_key=True),
        seconds=0.125,
    )
    moves = (StateMoved("a", replicas, 0.0, took_ms=moved_ms),) if moved_ms else ()
    return replace(seen, state_moves=moves)


def seconds_until_it_shrinks(replicas: int, moved_ms: float = 0.0) -> tuple[float, int]:
    policy = Elastic()
    policy.propose(look(50, replicas, moved_ms=moved_ms))
    for number in range(2, 4000):
        size = policy.propose(look(50, replicas)).wants[0].replicas
        if size < replicas:
            return number / 8, size
    raise AssertionError("it never shrank")


def test_idle_replicas_go_when_they_have_cost_as_much_as_the_move() -> None:
    # The input takes 5 of 16. Without keys a rescale is worth 5.76 replica seconds, and a move six times that: 3.14 s of 11.
    waited_s, size = seconds_until_it_shrinks(16)
    assert size == 5 and waited_s == pytest.approx(MOVE_WORTH * 0.36 * 16 / 11, abs=0.25)
    # Moves that take ten seconds keep 16 replicas busy for 160 replica seconds.
    waited_s, size = seconds_until_it_shrinks(16, moved_ms=10_000)
    assert size == 5 and waited_s == pytest.approx(160 / 11, abs=0.25)


def test_nothing_grows_again_while_keys_are_on_their_way() -> None:
    def sizes(moved_ms: float) -> list[int]:
        policy, size, seen = Elastic(), 5, []
        for number in range(24):
            policy.propose(look(50, size, moved_ms=moved_ms if number == 1 else 0.0))
        for queued in (500, 800, 1200):
            size = policy.propose(look(50, size, queued=queued)).wants[0].replicas
            seen.append(size)
        return seen

    first, *others = sizes(moved_ms=2000.0)
    assert first > 5 and others == [first, first]
    first, *others = sizes(moved_ms=0.0)
    assert others[-1] > first


def test_a_shrink_that_is_taken_back_doubles_the_price_and_one_that_paid_halves_it() -> None:
    moving = MovePrice()
    now_s, prices = 0.0, []
    for waits_s in (1.0, 1.0, 1.0, 60.0, 1.0):
        price_s = moving.price_s(8, 1.0)
        prices.append(price_s)
        moving.changes(8, 4, price_s, now_s)
        now_s += waits_s
        moving.changes(4, 8, price_s, now_s)
        now_s += 100.0
    assert prices == [6.0, 12.0, 24.0, 48.0, 24.0]
    for _ in range(20):
        moving.changes(8, 4, moving.price_s(8, 1.0), now_s)
        moving.changes(4, 8, moving.price_s(8, 1.0), now_s)
    assert moving.price_s(8, 1.0) == 6.0 * 2**MOST_DOUBLED


def test_a_peak_within_the_window_is_the_size_to_keep() -> None:
    moving = MovePrice()
    for second, taken in enumerate([3, 6, 4, 4, 4, 4, 4, 4]):
        moving.look(8, taken, float(second))
    # From the second on 6 were taken at most, and from the third on 4.
    assert moving.peaks == [(0.0, 6), (2.0, 4)]
    assert moving.shrunk(8, 16.0, 8.0) == 6
    assert moving.shrunk(8, 20.0, 8.0) == 4
    assert moving.shrunk(8, 25.0, 8.0) == 8
    moving.look(8, 8, 8.0)
    assert moving.peaks == [] and moving.shrunk(8, 0.5, 9.0) == 8


def test_operators_without_keys_are_decided_as_before_to_the_last_bit() -> None:
    policy, random = Elastic(), Random(7)
    sizes, queued, told = {"a": 2, "b": 3, "c": 1}, {"a": 0.0, "b": 0.0, "c": 0.0}, sha256()
    for number in range(4000):
        came = max(0, round((60 + 50 * sin(number / 90)) * (1 + 0.3 * random.gauss(0, 1))))
        seen, before = [source("in", came)], "in"
        for place, name in enumerate("abc"):
            service_s = (0.004, 0.01, 0.002)[place] * max(0.5, 1 + 0.3 * random.gauss(0, 1))
            served = min(queued[name] + came, sizes[name] * 0.95 * 0.125 / service_s)
            queued[name] += came - served
            seen.append(
                operator(
                    name,
                    {before: came},
                    service_ms=service_s * 1e3,
                    processed=round(served),
                    queued=round(queued[name]),
                    replicas=sizes[name],
                    most=32,
                )
            )
            came, before = round(served), name
        proposal = policy.propose(observation(*seen, seconds=0.125))
        sizes = {want.operator: want.replicas for want in proposal.wants} or sizes
        told.update(repr([(want.operator, want.replicas, want.reason) for want in proposal.wants]).encode())
    # Of the version that had no price for moves.
    assert told.hexdigest()[:16] == "df553944e39c6d23"


def test_operators_beside_a_keyed_one_shrink_when_they_would_alone() -> None:
    def looks_until(name: str, *, keyed: bool) -> int:
        policy = Elastic()
        for number in range(1, 200):
            a = operator("a", {"in": 50}, service_ms=10, replicas=11, most=32)
            b = operator("b", {"a": 50}, service_ms=10, replicas=11, most=32, by_key=True)
            seen = observation(source("in", 50), a, *([b] if keyed else []), seconds=0.125)
            if {want.operator: want.replicas for want in policy.propose(seen).wants}[name] < 11:
                return number
        return 200

    assert looks_until("a", keyed=True) == looks_until("a", keyed=False) == 8
    assert 24 < looks_until("b", keyed=True) < 64
