"""State of keys on the move: right while replicas change and hosts die, written whole, forgotten."""

import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flows import finish, ledger_of, wait_for
from word_counts import (
    Rows,
    check_emitted,
    counted,
    counting,
    expected,
    words,
)

from elastream import Settings, StateSettings, Topology, sources
from elastream.routing.key_groups import groups_of
from elastream.testing import LocalEngine
from elastream.workload import constant


@pytest.mark.parametrize("ring_s", [0.1, None])
def test_states_are_right_while_replicas_change_and_hosts_die(ring_s: float | None, tmp_path: Path) -> None:
    count, keys, chance, kills, next_kill = 20_000, 500, random.Random(7), 0, 6
    flow = counting(words(count, keys, 6.0), start=1)
    with LocalEngine(processes=True).start(
        flow, str(tmp_path), settings=Settings(state=StateSettings(ring_s=ring_s))
    ) as handle:
        wait_for(lambda: len(handle.status.hosts) > 1 and handle.totals("count").processed > 0)
        handle.scale("count", 2)
        wait_for(lambda: any(move.between_hosts for move in handle.state_moves))
        for times in range(10**6):
            if handle.await_end(chance.uniform(0.0, 0.2)):
                break
            handle.scale("count", chance.randint(1, 6))
            hosts = handle.status.hosts
            if times >= next_kill and kills < 3 and len(hosts) > 1:
                kills, next_kill = kills + 1, times + 12
                with suppress(ProcessLookupError):
                    os.kill(hosts[kills % len(hosts)].pid, signal.SIGKILL)
        assert counted(handle) == expected(count, keys)
        check_emitted(handle, expected(count, keys))
        audit, moves = handle.audit(), handle.state_moves
    assert audit.problems == () and audit.duplicates == 0
    # On a busy machine a host may come again too late to be killed once more.
    assert kills >= 1
    for move in moves:
        assert move.checksum_before == move.checksum_after and move.problem == "" and move.groups > 0


def test_what_another_host_has_learned_wrongly_does_not_take_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elastream.state import host_state

    learn = host_state.HostState.learn

    def forgets(self: Any, operator: str, since: Any, *rest: Any) -> None:
        learn(self, operator, since, *rest)
        for group in since:
            self.store.write(operator, [(group, key, None) for key, _ in self.store.group(operator, group)[:1]])

    flow = counting(words(20_000, 400, 3.0), start=1)
    with LocalEngine().start(flow, str(tmp_path), settings=Settings(state=StateSettings(ring_s=None))) as handle:
        wait_for(lambda: handle.totals("count").processed > 5000)
        before = ledger_of(handle).owners["count"]
        monkeypatch.setattr(host_state.HostState, "learn", forgets)
        handle.scale("count", 2)
        wait_for(lambda: handle.state_moves)
        monkeypatch.undo()
        move = handle.state_moves[0]
        assert "not what the old one has; the groups stay where they were" in move.problem
        assert move.checksum_before != move.checksum_after
        finish(handle)
        assert ledger_of(handle).owners["count"] == before
        assert counted(handle) == expected(20_000, 400)


def test_logs_are_cut_short_by_groups_that_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elastream import rules

    monkeypatch.setattr(rules, "LEAST_ROWS", 300)
    monkeypatch.setattr(rules, "MOST_CHANGES", 20)
    count, keys = 20_000, 200
    with LocalEngine().start(counting(words(count, keys, 4.0)), str(tmp_path)) as handle:
        most = 0
        while not handle.await_end(0.02):
            log = ledger_of(handle).logs["count"]
            most = max(most, len(log.changes))
        assert counted(handle) == expected(count, keys)
        table = handle.state("count").select(["word"]).combine_chunks().to_batches()[0]
    assert set(ledger_of(handle).logs["count"].wholes) == set(groups_of(table, ("word",)).tolist()) and most < 300
    left = [name for name in os.listdir(tmp_path / "segments") if name.endswith("s.arrow")]
    named = ledger_of(handle).segments()
    assert len([name for name in left if name not in named]) < 20
    with LocalEngine(processes=True).start(counting(words(count + 100, keys, 4.02)), str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(count + 100, keys)


def test_keys_that_have_not_changed_for_long_are_forgotten(tmp_path: Path) -> None:
    def both(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        state.n += len(rows)
        yield {"word": key, "n": state.n}

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        # The first key comes all the time, the others once in a hundred seconds.
        return {"id": numbers, "word": [f"w{n % 100 if n % 2 else 0}" for n in numbers]}

    flow = Topology("ttl")
    flow.source("in", sources.replay(constant(1.0, 1000.0), "id long, word string", make))
    counting(flow, both, ttl_s=50.0, replicas=1, start=None)
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        last = {row["word"]: row["n"] for row in handle.output("out").to_pylist()}
    assert last["w0"] == 500 and {last[f"w{n}"] for n in range(1, 100, 2)} == {1}


def test_a_change_that_is_taken_back_in_the_middle_leaves_every_key_where_it_belongs(tmp_path: Path) -> None:
    count, keys = 12_000, 300
    with LocalEngine().start(counting(words(count, keys, 3.0), replicas=(1, 2), start=1), str(tmp_path)) as handle:
        while not handle.await_end(0.0):
            for size in (2, 1):
                handle.scale("count", size)
                handle.await_end(0.005)
        assert counted(handle) == expected(count, keys)
        # The stream may end between the two changes.
        assert set(ledger_of(handle).owners["count"]) <= set(range(2)) and handle.status.replicas["count"] in (1, 2)
        check_emitted(handle, expected(count, keys))
    with LocalEngine().start(
        counting(words(count + 10, keys, 3.0025), replicas=(1, 1), start=None), str(tmp_path)
    ) as handle:
        finish(handle)
        assert set(ledger_of(handle).owners["count"]) == {0} and counted(handle) == expected(count + 10, keys)
