"""What becomes of a rescale whose files cannot be written or deleted, without Spark: it stops the run and is undone at the start."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from elastream.connectors.dataframes import state_rescale
from elastream.connectors.dataframes.state_rescale import UNFINISHED, StateReceipt, rescale, undo_unfinished
from elastream.errors import RunFailed
from elastream.lanes import Store

PLACE = (0, "count", "default")


class Files:
    """A checkpoint of a batch in 2 partitions, as names in memory."""

    path = "file:///checkpoint"

    def __init__(self) -> None:
        self.names = {"offsets/7", "commits/7", "state/0/0/7", "state/0/1/7"}
        self.broken = False

    def partitions(self, batch: int) -> int:
        return 2

    def files(self) -> set[str]:
        return set(self.names)

    def keep_only(self, files: set[str]) -> None:
        if self.broken:
            raise OSError("the disk is gone")
        self.names &= files


class Failing(Store):
    """A directory on which one kind of call fails, when it has done what it should."""

    fails = ""

    def write(self, name: str, data: Any) -> None:
        super().write(name, data)
        if self.fails == "write":
            raise OSError("no answer")

    def delete(self, names: Any) -> None:
        if self.fails == "delete":
            raise OSError("the disk is read-only")
        super().delete(names)


@pytest.fixture
def checkpoint(monkeypatch: pytest.MonkeyPatch) -> Files:
    """Repartitioned without Spark: a batch more, in which every row is there."""
    made = Files()
    monkeypatch.setattr(state_rescale, "settings_of_query", lambda *_: nullcontext())
    monkeypatch.setattr(state_rescale, "repartition", lambda *_: made.names.update({"offsets/8", "state/0/2/8"}))
    monkeypatch.setattr(state_rescale, "count_state", lambda *_: {PLACE: (10, 99)})
    return made


def rescaled(store: Store, checkpoint: Any) -> StateReceipt:
    no_spark: Any = None
    return rescale(no_spark, store, checkpoint, batch=7, partitions=3, committed=True)


def undone(store: Store, checkpoint: Any) -> set[str]:
    """The names that a start leaves in the checkpoint."""
    undo_unfinished(store, checkpoint)
    assert not store.exists(UNFINISHED)
    return set(checkpoint.names)


def doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a row is missing after a rescale."""
    counted = {7: (10, 99), None: (9, 98)}
    monkeypatch.setattr(state_rescale, "count_state", lambda spark, checkpoint, batch: {PLACE: counted[batch]})


def test_a_rescale_in_doubt_is_taken_back_and_the_run_goes_on(
    store: Store, checkpoint: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkpoint.files()
    doubt(monkeypatch)
    receipt = rescaled(store, checkpoint)
    assert (receipt.after, receipt.problem) == (2, "the state of count 0 is not the same after it")
    assert checkpoint.names == before and not store.exists(UNFINISHED)


def test_a_rescale_that_cannot_be_taken_back_stops_the_run_and_the_next_start_takes_it_back(
    store: Store, checkpoint: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkpoint.files()
    doubt(monkeypatch)
    checkpoint.broken = True
    with pytest.raises(
        RunFailed, match="neither be ended nor taken back: the disk is gone; mend that, then start again"
    ):
        rescaled(store, checkpoint)
    with pytest.raises(OSError, match="the disk is gone"):
        undo_unfinished(store, checkpoint)  # type: ignore[arg-type]
    checkpoint.broken = False
    assert undone(store, checkpoint) == before


def test_a_death_in_the_middle_is_undone_at_the_next_start(
    store: Store, checkpoint: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        checkpoint.names.add("offsets/8")
        raise Death

    before = checkpoint.files()
    monkeypatch.setattr(state_rescale, "repartition", die)
    with pytest.raises(Death):
        rescaled(store, checkpoint)
    broken_off = checkpoint.files()
    with pytest.raises(RunFailed, match="one before it was not ended; start again with the same base"):
        rescaled(store, checkpoint)
    assert checkpoint.names == broken_off > before
    assert undone(store, checkpoint) == before


class Death(BaseException):
    """What no handler handles."""


@pytest.mark.parametrize("fails", ["write", "delete"])
def test_a_rescale_whose_note_cannot_be_written_or_deleted_stops_the_run_too(
    tmp_path: Path, checkpoint: Files, fails: str
) -> None:
    store, before = Failing(str(tmp_path)), checkpoint.files()
    store.fails = fails
    with pytest.raises(RunFailed, match="rescale_state: could neither be ended nor taken back"):
        rescaled(store, checkpoint)
    store.fails = ""
    assert undone(store, checkpoint) == before
