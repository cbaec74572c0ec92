"""Storage that fails for a moment: what must not end a run does not, and what does says so in one line."""

from pathlib import Path
from typing import Any

import pytest

from elastream import Settings, Topology, sources
from elastream.engine.clock import SteadyClock
from elastream.engine.tick.letter_bounds import LetterBounds
from elastream.engine.tick.run_base import RunBase
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import BaseUnusable
from elastream.lanes import Appended, Entry, LedgerState, SchemaId, Slice, Store
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


def test_a_letter_whose_age_cannot_be_read_now_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = LetterBounds(Store(str(tmp_path)), Settings())
    monkeypatch.setattr(bounds._reader, "read", fails)
    assert bounds.expired(with_a_letter(), 0, 100.0, 1e9) == 0


def test_readers_that_cannot_be_looked_at_now_are_looked_at_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = RunBase(Store(str(tmp_path)), SteadyClock())
    base.state = with_a_letter()
    with monkeypatch.context() as patch:
        patch.setattr("elastream.engine.tick.run_base.acknowledged", fails)
        assert base.read_from_outside((), 100.0) == []
    monkeypatch.setattr("elastream.engine.tick.run_base.acknowledged", lambda store, name: 1)
    assert base.read_from_outside((), 200.0) == [(DEAD_LETTERS, 0, 1)]


def test_a_base_whose_name_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Topology("one").source("in", sources.replay(constant(10, 1)))
    flow.map("a", lambda row: row, after="in").output("out", after="a")
    monkeypatch.setattr("elastream.engine.worker.base_id.known_id", fails)
    with pytest.raises(BaseUnusable, match="cannot be read and written"):
        LocalEngine(virtual=True).run(flow, str(tmp_path))
