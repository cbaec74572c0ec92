"""Storage that fails for a moment: what must not end a run does not, and what does says so in one line."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastream import ErrorSettings, Settings, Topology, sources
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import BaseUnusable
from elastream.lanes import Appended, Entry, LedgerState, SchemaId, Slice, Store
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import encode_schema
from elastream.testing import LocalEngine
from elastream.topology import parse_schema
from elastream.workload import constant


def fails(*_: Any) -> Any:
    raise OSError(5, "Input/output error")


def with_a_letter() -> LedgerState:
    state = LedgerState()
    letter = Appended(DEAD_LETTERS, 0, Slice("h1-000001k.arrow", 0, 10, 0, SchemaId("s"), 0, 1))
    schemas = {SchemaId("s"): encode_schema(parse_schema("failed_at timestamp"))}
    state.apply(Entry(0, 0.0, appended=[letter], schemas=schemas))
    return state


def look(housekeeping: Housekeeping, state: LedgerState, at_s: float, wall_s: float) -> tuple[Any, int]:
    housekeeping.step(state, at_s, wall_s)
    return housekeeping.take(state)


def test_a_letter_whose_age_cannot_be_read_now_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    housekeeping, state = Housekeeping(Store(str(tmp_path)), Settings(), (), inline=True), with_a_letter()
    with monkeypatch.context() as patch:
        patch.setattr(SegmentReader, "read", fails)
        assert look(housekeeping, state, 100.0, 1e9) == ([], 0)
    long_ago = pa.record_batch({"failed_at": pa.array([0], pa.timestamp("us"))})
    monkeypatch.setattr(SegmentReader, "read", lambda *_: long_ago)
    assert look(housekeeping, state, 200.0, 1e9) == ([], 1)


def test_readers_that_cannot_be_looked_at_now_are_looked_at_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forever = Settings(errors=ErrorSettings(letters_days=None))
    housekeeping, state = Housekeeping(Store(str(tmp_path)), forever, (), inline=True), with_a_letter()
    with monkeypatch.context() as patch:
        patch.setattr("elastream.engine.driver.commit.housekeeping.acknowledged", fails)
        assert look(housekeeping, state, 100.0, 0.0) == ([], 0)
    monkeypatch.setattr("elastream.engine.driver.commit.housekeeping.acknowledged", lambda store, name: 1)
    assert look(housekeeping, state, 200.0, 0.0) == ([(DEAD_LETTERS, 0, 1)], 0)


def test_a_look_at_slow_storage_holds_up_no_tick_and_its_answer_is_right_however_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def slow(*_: Any) -> int:
        asked.set()
        assert answered.wait(30)
        return 1

    monkeypatch.setattr("elastream.engine.driver.commit.housekeeping.acknowledged", slow)
    forever = Settings(errors=ErrorSettings(letters_days=None))
    housekeeping, state = Housekeeping(Store(str(tmp_path)), forever, (), inline=False), with_a_letter()
    assert look(housekeeping, state, 100.0, 0.0) == ([], 0)
    assert asked.wait(30)
    # Somebody drains it meanwhile: the answer is a position, so the row is not taken twice.
    state.apply(Entry(1, 0.0, consumed=[(DEAD_LETTERS, 0, 1)]))
    answered.set()
    housekeeping.close(30.0)
    assert housekeeping.take(state) == ([], 0)


def test_a_base_whose_name_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Topology("one")
    flow.source("in", sources.replay(constant(10, 1)))
    flow.map("a", lambda row: row, after="in").output("out")
    monkeypatch.setattr("elastream.engine.worker.base_id.known_id", fails)
    with pytest.raises(BaseUnusable, match="cannot be read and written"):
        LocalEngine(virtual=True).start(flow, str(tmp_path))
