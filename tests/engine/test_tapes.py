"""Tapes: the ticks of a recorded run are made again, and a driver that does something else is found out."""

from pathlib import Path
from typing import Any

import pytest
from flows import finish, numbers
from word_counts import counting, words

from elastream import Settings, StateSettings, Topology
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.tape.replay import Diverged, ReplayedStep, replay_tape
from elastream.errors import SettingError
from elastream.testing import LocalEngine


def flow() -> Topology:
    return counting(words(3000, 60, 3.0), replicas=(1, 4))


def record(folder: Path, engine: LocalEngine) -> str:
    """A run with keyed state that is rescaled, gets other hosts, and drops tuples."""
    tape = str(folder / "tape")
    settings = Settings(state=StateSettings(ring_s=0.1))
    with engine.start(flow(), str(folder / "base"), record=tape, settings=settings) as handle:
        sizes = iter((4, 2, 1, 3) * 3)

        def change(tick: Any) -> None:
            if tick.number % 40 == 0:
                handle.scale("count", next(sizes, 2))
            if tick.number == 90:
                handle.set_level("host", 1)

        handle.subscribe(change)
        finish(handle)
    return tape


@pytest.mark.parametrize("virtual", [True, False])
def test_the_ticks_of_a_recorded_run_are_made_again(virtual: bool, tmp_path: Path) -> None:
    tape = record(tmp_path, LocalEngine(virtual=virtual))
    steps: list[ReplayedStep] = []
    assert replay_tape(tape, flow().build(), steps.append) == len(steps) > 50
    entries = [entry for step in steps for entry in step.entries]
    assert [entry.number for entry in entries] == list(range(entries[0].number, entries[-1].number + 1))
    assert any(entry.owners for entry in entries) and any(entry.sizes for entry in entries[1:])
    assert any(step.sent for step in steps)


def test_a_driver_that_does_something_else_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(tmp_path, LocalEngine(virtual=True))
    take = LaneSchedule.take_starved
    # The last lane that is due goes first.
    monkeypatch.setattr(LaneSchedule, "take_starved", lambda schedule: take(schedule)[::-1])
    with pytest.raises(Diverged, match=r"step \d+: other (entries|messages) than when it was recorded"):
        replay_tape(tape, flow().build())


def test_a_tape_of_something_else_or_a_damaged_one_is_refused_in_one_line(tmp_path: Path) -> None:
    tape = record(tmp_path, LocalEngine(virtual=True))
    other = numbers(1).output("out", after="in").topology.build()
    with pytest.raises(SettingError, match=r"is of the application '.*', given was '.*'"):
        replay_tape(tape, other)
    with pytest.raises(SettingError, match=r"cannot be read"):
        replay_tape(str(tmp_path / "no"), other)
    (tmp_path / "text").write_text("This is no tape, whatever its name says.")
    with pytest.raises(SettingError, match=r"not a tape"):
        replay_tape(str(tmp_path / "text"), other)
    data = Path(tape).read_bytes()
    (tmp_path / "torn").write_bytes(data[: len(data) // 2])
    assert replay_tape(str(tmp_path / "torn"), flow().build()) > 20


def test_a_tape_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "tape").write_text("mine")
    with pytest.raises(SettingError, match=r"record: .*cannot be written: File exists; name a new file"):
        LocalEngine(virtual=True).start(flow(), str(tmp_path / "base"), record=str(tmp_path / "tape"))
    assert (tmp_path / "tape").read_text() == "mine"
