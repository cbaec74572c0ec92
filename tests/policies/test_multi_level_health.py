"""Multi-level elasticity: what is congested, and the cheapest container that helps (algorithm 2)."""

from dataclasses import replace

import pytest
from multi_level_looks import seen

from elastream.control import Observation
from elastream.fleet import Level
from elastream.policies.multi_level import MultiLevel
from elastream.policies.multi_level.health import Sources, congested
from elastream.policies.multi_level.scale_out import scale_out
from elastream.policies.multi_level.table import Configuration
from elastream.testing import observation, operator, source


def growth_of(look: Observation, overload: float = 0.9) -> tuple[Configuration | None, str]:
    sources = Sources()
    sources.note(look)
    sick = congested(look, sources, 0.9)
    assert sick is not None
    found = scale_out(look, sick, overload)
    return found.configuration, found.reason


def test_the_congested_instance_closest_to_the_sources_is_found() -> None:
    sources = Sources()
    well = seen(1000)
    sources.note(well)
    assert congested(well, sources, 0.9) is None
    sick = seen(1000, served=0.8)
    sources.note(sick)
    found = congested(sick, sources, 0.9)
    assert found is not None
    assert (found.operator, round(found.health, 2), found.is_source) == ("parse", 0.8, False)


def test_a_source_is_as_healthy_as_the_part_of_what_was_due_that_it_emitted() -> None:
    sources = Sources()
    look = observation(source("in", 6000, queued=4000), operator("parse", {"in": 6000}), seconds=10.0)
    sources.note(look)
    found = congested(look, sources, 0.9)
    assert found is not None and found.is_source and found.health == 0.6
    # The same 4,000 still wait, but all that became due since was read.
    sources.note(look)
    assert congested(look, sources, 0.9) is None


def test_a_thread_comes_before_a_machine() -> None:
    configuration, reason = growth_of(seen(6000, served=0.8, cpu=0.5))
    assert configuration is not None
    assert configuration.replicas == {"parse": 2} and configuration.levels[Level.EXECUTOR] == 1
    assert "machine 0 has CPU 0.50, memory 0.50" in reason and "one seat more, there in 0.05 s" in reason


@pytest.mark.parametrize(("cpu", "memory"), [(0.95, 0.5), (0.5, 0.95)])
def test_an_overloaded_machine_asks_for_another_with_its_whole_hierarchy(cpu: float, memory: float) -> None:
    configuration, reason = growth_of(seen(12000, served=0.8, replicas=2, cpu=cpu, memory=memory))
    assert configuration is not None
    assert configuration.replicas == {"parse": 3}
    assert (configuration.levels[Level.EXECUTOR], configuration.levels[Level.HOST]) == (2, 2)
    assert "one executor more, there in 60 s" in reason


def test_processes_that_are_full_on_a_machine_that_is_not_ask_for_a_process() -> None:
    look = seen(6000, served=0.8, cpu=0.5)
    full = replace(look, hosts=(replace(look.hosts[0], cores=1.0, busy_cores=1.0),))
    configuration, reason = growth_of(full)
    assert configuration is not None
    assert configuration.levels[Level.HOST] == 2 and configuration.levels[Level.EXECUTOR] == 1
    assert "one host more, there in 2 s" in reason


def test_threads_that_wait_without_a_seat_ask_for_a_seat() -> None:
    look = seen(6000, served=0.8, cpu=0.1, replicas=8, waits=True, most=64)
    configuration, _ = growth_of(look)
    assert configuration is not None
    assert (configuration.levels[Level.SEAT], configuration.replicas) == (9, {"parse": 9})


def test_replicas_that_wait_need_a_thread_and_no_core() -> None:
    configuration, _ = growth_of(seen(6000, served=0.8, cpu=1.0, waits=True))
    assert configuration is not None
    assert (configuration.replicas, configuration.levels[Level.EXECUTOR]) == ({"parse": 2}, 1)


def test_what_nothing_helps_is_told_once() -> None:
    policy = MultiLevel()
    looks = [policy.propose(seen(6000, at_s=10.0 * n, served=0.8, executors=8, cpu=1.0)) for n in range(1, 4)]
    assert [len(look.alerts) for look in looks] == [1, 0, 0]
    assert looks[0].alerts[0].startswith("nothing helps: parse 0 has health 0.80; machine 0 has CPU 1.00")


def test_a_source_that_is_behind_gets_a_process_and_no_replica() -> None:
    look = replace(seen(1000), operators={"in": source("in", 5000, queued=5000), "parse": seen(500).operators["parse"]})
    configuration, reason = growth_of(look)
    assert configuration is not None
    assert configuration.levels[Level.HOST] == 2 and configuration.replicas == {"parse": 1}
    assert reason.startswith("source in has health 0.50")


def test_with_an_overload_of_nothing_every_replica_gets_a_machine() -> None:
    configuration, _ = growth_of(seen(6000, served=0.8, cpu=0.1), overload=0.0)
    assert configuration is not None and configuration.levels[Level.EXECUTOR] == 2


def test_what_cannot_grow_says_so() -> None:
    assert growth_of(seen(6000, served=0.8, replicas=8))[0] is None
    none, reason = growth_of(seen(6000, served=0.8, executors=8, cpu=1.0))
    assert none is None and "no more than 8 executors can be had" in reason
