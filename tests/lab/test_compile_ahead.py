"""What is compiled before the tests is all that simulations need, whatever their size."""

from typing import Any

from simulations import STORM, TURNS, line, sized

from elastream.simulator.engine_turns import advance_turns
from elastream.simulator.storm_steps import advance_steps
from elastream.workload import constant
from elastream_lab.bench.compile_ahead import compile_ahead


def test_simulations_of_any_size_need_nothing_that_was_not_compiled_ahead() -> None:
    compile_ahead()
    entries: tuple[Any, ...] = (advance_turns, advance_steps)
    ahead = [set(entry.signatures) for entry in entries]
    for length, pool in ((1, 1), (1, 3), (3, 1), (2, 2)):
        for system in (TURNS, STORM):
            sized(line(constant(50, 2.0), length=length, pool=pool), "static", system, seconds=2)
    assert [set(entry.signatures) for entry in entries] == ahead
