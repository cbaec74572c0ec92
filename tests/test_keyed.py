"""Keyed operators: what they remember of every key is right, through restarts, rescales and kills, and can be looked at."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from flows import finish, wait_for

from elastream import Settings, Topology, sources
from elastream.cli.main import main
from elastream.control import Proposal, Want, read_journal
from elastream.engine.measure.recording import Recorder, events_of
from elastream.errors import OperatorFailed, SettingError, TopologyError
from elastream.lanes import Store
from elastream.routing.key_groups import groups_of
from elastream.scoring.report import write_report
from elastream.state.table import state_of_key, state_table
from elastream.testing import LocalEngine
from elastream.workload import constant

Rows = list[dict[str, Any]]


def words(count: int, keys: int, seconds: float = 0.5) -> Topology:
    """A source `in` of ids, each with a word; word number 0 comes most often."""

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"id": numbers, "word": [word_of(int(n), keys) for n in numbers]}

    replay = sources.replay(constant(count / seconds, seconds), "id long, word string", make)
    return Topology("words").source("in", replay)


def word_of(number: int, keys: int) -> str:
    return f"w{number * 7919 % keys if number % 3 else 0}"


def expected(count: int, keys: int) -> Counter[str]:
    return Counter(word_of(n, keys) for n in range(count))


def count_words(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
    state.n += len(rows)
    yield {"word": key, "n": state.n}


def counting(flow: Topology, function: Callable[..., Any] = count_words, **how: Any) -> Topology:
    options = {"state": "n long", "initial": {"n": 0}, "schema": "word string, n long", "replicas": (1, 6), "start": 2}
    flow.keyed("count", function, after="in", key="word", **{**options, **how})
    return flow.output("out", after="count")


def counted(handle: Any) -> Counter[str]:
    return Counter({row["word"]: row["n"] for row in handle.state("count").to_pylist()})


def check_emitted(handle: Any, wanted: Counter[str]) -> None:
    """Every key's counts come in order, and the last one is right."""
    last = Counter[str]()
    for row in handle.output("out").to_pylist():
        assert row["n"] > last[row["word"]], f"{row} after {last[row['word']]}"
        last[row["word"]] = row["n"]
    assert last == wanted


# -- the ways to write one


def as_batch(batch: pa.RecordBatch, state: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    new = pa.Table.from_batches([batch]).group_by("word").aggregate([("word", "count")])
    both = new.join(pa.Table.from_batches([state]), "word")
    both = both.set_column(both.column_names.index("n"), "n", pc.add(both["n"], both["word_count"])).select(
        ["word", "n"]
    )
    return both, both


def as_frame(frame: pd.DataFrame, state: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    new = state.assign(n=state["n"] + state["word"].map(frame["word"].value_counts()))
    return new, new


@pytest.mark.parametrize("kind", ["keyed", "keyed_batch", "keyed_pandas"])
def test_a_count_is_right_however_it_is_written(kind: str, tmp_path: Path) -> None:
    function = {"keyed": count_words, "keyed_batch": as_batch, "keyed_pandas": as_frame}[kind]
    flow = words(3000, 50)
    getattr(flow, kind)(
        "count",
        function,
        after="in",
        key="word",
        state="n long",
        initial={"n": 0},
        schema="word string, n long",
        replicas=3,
    )
    flow.output("out", after="count")
    with LocalEngine().run(flow, str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(3000, 50)
        check_emitted(handle, expected(3000, 50))
        assert handle.audit().problems == ()


def test_a_key_of_several_columns_and_a_state_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    columns = (
        "n long, small byte, text string, raw binary, real double, yes boolean, day date, at timestamp, "
        "price decimal(10,2), many array<string>, named map<string,long>, both struct<a:long,b:string>"
    )

    def remember(key: tuple[int, str], rows: Rows, state: Any) -> list[dict[str, Any]]:
        import datetime as dt
        import decimal

        assert isinstance(key, tuple) and all(row["id"] % 4 == key[0] for row in rows)
        state.n = np.int64(key[0])
        state.small, state.text, state.raw, state.real, state.yes = -7, "ü", b"\xff\x00", 1.5, True
        state.day, state.at = dt.date(2020, 2, 3), dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
        state.price, state.many, state.named = decimal.Decimal("1.25"), [*(state.many or [])[:1], "x"], [("k", 1)]
        state.both = {"a": 1, "b": None}
        return []

    flow = words(200, 3)
    flow.map("cut", lambda row: {"id": row["id"] % 4, "word": row["word"]}, after="in")
    flow.keyed("last", remember, after="cut", key=["id", "word"], state=columns, replicas=2)
    flow.output("out", after="last")
    with LocalEngine().run(flow, str(tmp_path)) as handle:
        finish(handle)
        found = handle.state("last").to_pylist()
    assert {(row["id"], row["word"]) for row in found} <= {(n, f"w{w}") for n in range(4) for w in range(3)}
    row = found[0]
    assert row["n"] == row["id"] and row["small"] == -7 and row["raw"] == b"\xff\x00" and row["many"][-1] == "x"
    assert row["both"] == {"a": 1, "b": None} and row["named"] == [("k", 1)] and str(row["price"]) == "1.25"
    assert row["at"].year == 2021 and row["day"].day == 3 and row["yes"] is True


def test_a_key_can_be_forgotten_and_begins_anew(tmp_path: Path) -> None:
    def three_times(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        for _ in rows:
            state.n += 1
            if state.n == 3:
                state.remove()
                yield {"word": key, "n": 3}

    flow = counting(words(999, 1), three_times, replicas=1, start=None)
    with LocalEngine(virtual=True).run(flow, str(tmp_path)) as handle:
        finish(handle)
        assert handle.output("out").num_rows == 333
        assert handle.state("count").num_rows == 0


# -- what is wrong with a tuple, or with a function


def test_a_tuple_on_which_the_function_raises_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    def fragile(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        for row in rows:
            state.n += 1
            if row["id"] % 10 == 7:
                raise ValueError(f"seven: {row['id']}")
        yield {"word": key, "n": state.n}

    with LocalEngine().run(counting(words(1000, 20), fragile), str(tmp_path)) as handle:
        finish(handle)
        wanted = Counter(word_of(n, 20) for n in range(1000) if n % 10 != 7)
        assert counted(handle) == wanted
        check_emitted(handle, wanted)
        letters = handle.dead_letters().to_pylist()
        assert handle.audit().problems == ()
    assert len(letters) == 100 and all("ValueError: seven" in letter["error"] for letter in letters)


def test_a_letter_that_is_sent_again_goes_to_the_lane_that_remembers_its_key_now(tmp_path: Path) -> None:
    def fragile(mended: bool) -> Callable[..., Any]:
        def count(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
            if not mended and any(row["id"] % 10 == 7 for row in rows):
                raise ValueError("seven")
            return count_words(key, rows, state)

        return count

    base = str(tmp_path)
    with LocalEngine().run(counting(words(1000, 20), fragile(False)), base) as handle:
        finish(handle)
        assert handle.dead_letters().num_rows == 100
    with LocalEngine().run(
        counting(words(1010, 20, 0.505), fragile(False), replicas=(5, 5), start=None), base
    ) as handle:
        wait_for(lambda: set(handle.ledger.owners["count"]) == set(range(5)))
    assert main(["letters", base, "--retry"]) == 0
    with LocalEngine().run(
        counting(words(1010, 20, 0.505), fragile(True), replicas=(5, 5), start=None), base
    ) as handle:
        finish(handle)
        assert counted(handle) == expected(1010, 20)
        assert handle.audit().problems == () and handle.dead_letters().num_rows == 0


def test_a_batch_function_that_raises_sets_aside_the_tuples_it_raises_on(tmp_path: Path) -> None:
    def fragile(batch: pa.RecordBatch, state: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        if 500 in batch.column("id").to_pylist():
            raise ValueError("five hundred")
        return as_batch(batch, state)

    flow = words(1000, 20)
    flow.keyed_batch(
        "count",
        fragile,
        after="in",
        key="word",
        state="n long",
        initial={"n": 0},
        schema="word string, n long",
        replicas=2,
    )
    flow.output("out", after="count")
    with LocalEngine().run(flow, str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == Counter(word_of(n, 20) for n in range(1000) if n != 500)
        assert handle.dead_letters().num_rows == 1


def test_keys_that_are_null_or_not_a_number_are_set_aside_with_one_line(tmp_path: Path) -> None:
    flow = words(100, 5)
    flow.map(
        "odd",
        lambda row: {
            "x": None if row["id"] % 10 == 1 else float("nan") if row["id"] % 10 == 2 else row["id"] % 3 + 0.5
        },
        after="in",
        schema="x double",
    )
    flow.keyed(
        "count",
        lambda key, rows, state: setattr(state, "n", (state.n or 0) + len(rows)),
        after="odd",
        key="x",
        state="n long",
        replicas=2,
    )
    flow.output("out", after="count")
    with LocalEngine().run(flow, str(tmp_path)) as handle:
        finish(handle)
        errors = Counter(letter["error"] for letter in handle.dead_letters().to_pylist())
        assert sum(handle.state("count").column("n").to_pylist()) == 80
        assert handle.audit().problems == ()
    assert errors == {
        "operator 'count': key 'x' is null; filter such tuples out before, or give them a key": 10,
        "operator 'count': key 'x' is not a number; filter such tuples out before, or give them a key": 10,
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda state: setattr(state, "m", 1), "'State' object has no attribute 'm'"),
        (lambda state: setattr(state, "n", "many"), "state: column 'n' is declared int64, and was set to str 'many'"),
        (lambda state: setattr(state, "n", 2**70), "state: column 'n' is declared int64, and was set to int 11805"),
    ],
)
def test_a_state_that_is_not_as_declared_is_said_in_one_line(wrong: Any, said: str, tmp_path: Path) -> None:
    def careless(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        state.n += len(rows)
        if key == "w0":
            wrong(state)
        yield {"word": key, "n": state.n}

    with LocalEngine().run(counting(words(300, 5), careless), str(tmp_path)) as handle:
        finish(handle)
        errors = {letter["error"] for letter in handle.dead_letters().to_pylist()}
        assert counted(handle) == Counter({w: n for w, n in expected(300, 5).items() if w != "w0"})
    assert len(errors) == 1 and said in errors.pop()


def test_a_function_that_never_gives_what_it_declared_stops_the_run(tmp_path: Path) -> None:
    flow = counting(words(300, 5), lambda key, rows, state: [{"wrong": 1}])
    with (
        pytest.raises(
            OperatorFailed, match=r"operator 'count': declared columns \['word', 'n'\], returned \['wrong'\]"
        ),
        LocalEngine().run(flow, str(tmp_path)) as handle,
    ):
        finish(handle)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"key": "wrd"}, "keyed 'count': key 'wrd' is no column that enters; did you mean 'word'?"),
        ({"key": []}, "keyed 'count': a key is one or more columns"),
        ({"state": "n lng"}, "schema 'n lng': expected a type"),
        ({"state": "_n long", "initial": {}}, "keyed 'count': state column '_n': a name that Python can say"),
        ({"state": "word long", "initial": {}}, "keyed 'count': state column 'word'"),
        ({"initial": {"m": 0}}, "keyed 'count': initial has 'm', which is no state column; there are n"),
        ({"ttl_s": 0}, "keyed 'count': ttl_s must be more than 0, got 0"),
        ({"chain": True}, "keyed 'count': its key chooses the replica; remove chain, and grouping"),
        ({"kee": 1}, "keyed 'count': takes no 'kee'; did you mean 'key'?"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_declared(how: dict[str, Any], said: str) -> None:
    options: dict[str, Any] = {"key": "word", "state": "n long", "initial": {"n": 0}, "schema": "word string, n long"}
    flow = words(10, 5)
    with pytest.raises(TopologyError) as caught:
        flow.keyed("count", count_words, after="in", **{**options, **how}).output("out", after="count").build()
    assert said in str(caught.value)


# -- across restarts


def run_until(flow: Topology, base: Path, processed: int, **how: Any) -> None:
    with LocalEngine().run(flow, str(base), **how) as handle:
        wait_for(lambda: handle.totals("count").processed >= processed)


def test_a_run_goes_on_with_what_it_remembered(tmp_path: Path) -> None:
    for processed in (500, 1500, 3000):
        run_until(counting(words(6000, 80, 3.0)), tmp_path, processed)
    with LocalEngine(processes=True).run(counting(words(6000, 80, 3.0)), str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(6000, 80)
        check_emitted(handle, expected(6000, 80))


def test_a_new_column_is_followed_and_anything_else_is_refused_with_one_line(tmp_path: Path) -> None:
    def with_more(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        assert state.first is not None
        state.n += len(rows)
        state.first = min(state.first, rows[0]["id"])
        yield {"word": key, "n": state.n}

    run_until(counting(words(4000, 30, 2.0)), tmp_path, 500)
    for how in ({"state": "n string", "initial": {}}, {"state": "m long", "initial": {"m": 0}}, {"key": "id"}):
        flow = words(4000, 30, 2.0)
        options: dict[str, Any] = {"key": "word", "state": "n long", "initial": {"n": 0}, "replicas": (1, 6), **how}
        flow.keyed("count", count_words, after="in", schema="word string, n long", **options).output(
            "out", after="count"
        )
        with pytest.raises(
            SettingError, match=r"'count' remembers n int64 of every word string, and now .*discard=\('count',\)"
        ):
            LocalEngine().run(flow, str(tmp_path))
    plain = words(4000, 30, 2.0)
    plain.map(
        "count", lambda row: {"word": row["word"], "n": 1}, after="in", schema="word string, n long", replicas=(1, 6)
    )
    with pytest.raises(SettingError, match="this topology has no keyed operator 'count'"):
        LocalEngine().run(plain.output("out", after="count"), str(tmp_path))
    more = counting(words(4000, 30, 2.0), with_more, state="first long, n long", initial={"n": 0, "first": 10**9})
    with LocalEngine().run(more, str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(4000, 30)
        assert handle.dead_letters().num_rows == 0
    again = counting(words(4500, 30, 2.25), state="n string", initial={"n": ""}, function=lambda key, rows, state: [])
    with LocalEngine().run(again, str(tmp_path), discard=("count",)) as handle:
        finish(handle)
        assert handle.state("count").column("n").to_pylist() == [""] * handle.state("count").num_rows


# -- rescales and kills


@pytest.mark.parametrize("ring_s", [0.1, None])
def test_states_are_right_while_replicas_change_and_hosts_die(ring_s: float | None, tmp_path: Path) -> None:
    count, keys, chance, kills = 20_000, 500, random.Random(7), 0
    flow = counting(words(count, keys, 6.0))
    with LocalEngine(processes=True).run(flow, str(tmp_path), settings=Settings(ring_s=ring_s)) as handle:
        for times in range(10**6):
            if handle.await_end(chance.uniform(0.0, 0.2)):
                break
            handle.scale("count", chance.randint(1, 6))
            hosts = list(handle._run.planner.roster.hosts.values())
            if times % 12 == 11 and kills < 3 and len(hosts) > 1:
                kills += 1
                with suppress(ProcessLookupError):
                    os.kill(hosts[kills % len(hosts)].pid, signal.SIGKILL)
        assert counted(handle) == expected(count, keys)
        check_emitted(handle, expected(count, keys))
        audit, moves = handle.audit(), handle.state_moves
    assert audit.problems == () and audit.duplicates == 0
    assert kills == 3 and any(move.between_hosts for move in moves)
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
    with LocalEngine().run(flow, str(tmp_path), settings=Settings(ring_s=None)) as handle:
        wait_for(lambda: handle.totals("count").processed > 5000)
        before = handle.ledger.owners["count"]
        monkeypatch.setattr(host_state.HostState, "learn", forgets)
        handle.scale("count", 2)
        wait_for(lambda: handle.state_moves)
        monkeypatch.undo()
        move = handle.state_moves[0]
        assert "not what the old one has; the groups stay where they were" in move.problem
        assert move.checksum_before != move.checksum_after
        finish(handle)
        assert handle.ledger.owners["count"] == before
        assert counted(handle) == expected(20_000, 400)


def test_logs_are_cut_short_by_groups_that_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elastream import rules

    monkeypatch.setattr(rules, "LEAST_ROWS", 300)
    monkeypatch.setattr(rules, "MOST_CHANGES", 20)
    count, keys = 20_000, 200
    with LocalEngine().run(counting(words(count, keys, 4.0)), str(tmp_path)) as handle:
        most = 0
        while not handle.await_end(0.02):
            log = handle.ledger.logs["count"]
            most = max(most, len(log.changes))
        assert counted(handle) == expected(count, keys)
        table = handle.state("count").select(["word"]).combine_chunks().to_batches()[0]
    assert set(handle.ledger.logs["count"].wholes) == set(groups_of(table, ("word",)).tolist()) and most < 300
    left = [name for name in os.listdir(tmp_path / "segments") if name.endswith("s.arrow")]
    named = handle.ledger.segments()
    assert len([name for name in left if name not in named]) < 20
    with LocalEngine(processes=True).run(counting(words(count + 100, keys, 4.02)), str(tmp_path)) as handle:
        finish(handle)
        assert counted(handle) == expected(count + 100, keys)


def test_keys_that_have_not_changed_for_long_are_forgotten(tmp_path: Path) -> None:
    def both(key: str, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
        state.n += len(rows)
        yield {"word": key, "n": state.n}

    def make(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
        # The first key comes all the time, the others once in a hundred seconds.
        return {"id": numbers, "word": [f"w{n % 100 if n % 2 else 0}" for n in numbers]}

    flow = Topology("ttl").source("in", sources.replay(constant(1.0, 1000.0), "id long, word string", make))
    counting(flow, both, ttl_s=50.0, replicas=1, start=None)
    with LocalEngine(virtual=True).run(flow, str(tmp_path)) as handle:
        finish(handle)
        last = {row["word"]: row["n"] for row in handle.output("out").to_pylist()}
    assert last["w0"] == 500 and {last[f"w{n}"] for n in range(1, 100, 2)} == {1}


# -- looking at it


def test_states_can_be_looked_at_from_outside_while_the_stream_flows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = str(tmp_path / "base")
    with LocalEngine().run(counting(words(30_000, 100, 3.0)), base) as handle:
        wait_for(lambda: handle.totals("count").processed > 1000)
        seen, until = 0, time.monotonic() + 60
        while handle.active and time.monotonic() < until:
            total = sum(handle.state("count").column("n").to_pylist())
            assert seen <= total <= 30_000
            seen = total
            if handle.await_end(0.0):
                break
    assert counted(handle) == expected(30_000, 100)
    assert main(["state", base]) == 0
    shown = capsys.readouterr().out
    assert "count" in shown and "word string" in shown and "100" in shown
    assert main(["state", base, "count"]) == 0
    assert "key groups" in capsys.readouterr().out
    assert main(["state", base, "count", "--key", "w1"]) == 0
    assert f'"n": {expected(30_000, 100)["w1"]}' in capsys.readouterr().out
    assert main(["state", base, "count", "--key", "nobody"]) == 1
    file = tmp_path / "all.parquet"
    assert main(["state", base, "count", "--export", str(file)]) == 0
    assert pq.read_table(file).num_rows == 100
    capsys.readouterr()
    for wrong, said in (
        (["state", base, "cuont"], "no keyed operator 'cuont'; those that remember something: count"),
        (["state", base, "count", "--key", "a", "b"], "its key is word, got 2 values"),
        (["state", str(tmp_path)], "has no ledger"),
        (["state", base, "--export", "x"], "of which operator?"),
    ):
        assert main(wrong) == 2
        assert said in capsys.readouterr().err
    assert state_of_key(Store(base), "count", ("w2",)) == {"word": "w2", "n": expected(30_000, 100)["w2"]}
    assert state_table(Store(base), "count").num_rows == 100


def test_states_that_moved_are_in_the_journal_the_report_and_its_page(tmp_path: Path) -> None:
    class UpAndDown:
        name, start = "up and down", 1

        def propose(self, observation: Any) -> Proposal:
            size = observation.operators["count"].replicas
            return Proposal((Want("count", 2 if size == 1 else 1, "a change in every interval"),))

    flow = counting(words(6000, 100, 3.0), replicas=(1, 2), start=1)
    engine, base = LocalEngine(), str(tmp_path / "base")
    with engine.run(flow, base, policy=UpAndDown(), td_s=0.5, benchmark_s=0.0) as handle:
        recorder = Recorder(handle)
        finish(handle)
        events, moves = events_of(handle.audit()), handle.state_moves
    report = write_report(recorder.record, events, tmp_path / "report")
    between = [moved for moved in moves if moved.between_hosts]
    assert between and all(moved.checksum_before == moved.checksum_after for moved in moves)
    told = [moved for entry in read_journal(Store(base)) for moved in entry.observation.state_moves]
    assert told == moves[: len(told)] and told
    assert [moved["groups"] for moved in report["state_moves"]] == [
        m.groups for m in moves[: len(report["state_moves"])]
    ]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "State that moved" in page and "the same" in page


def test_a_change_that_is_taken_back_in_the_middle_leaves_every_key_where_it_belongs(tmp_path: Path) -> None:
    count, keys = 12_000, 300
    with LocalEngine().run(counting(words(count, keys, 3.0), replicas=(1, 2), start=1), str(tmp_path)) as handle:
        while not handle.await_end(0.0):
            for size in (2, 1):
                handle.scale("count", size)
                handle.await_end(0.005)
        assert counted(handle) == expected(count, keys)
        wanted = handle.ledger.sizes["count"]
        assert set(handle.ledger.owners["count"]) <= set(range(2)) and wanted == 1
        check_emitted(handle, expected(count, keys))
    with LocalEngine().run(
        counting(words(count + 10, keys, 3.0025), replicas=(1, 1), start=None), str(tmp_path)
    ) as handle:
        finish(handle)
        assert set(handle.ledger.owners["count"]) == {0} and counted(handle) == expected(count + 10, keys)
