"""Spark's checkpoint as files: what came since is taken back, all of it and nothing else, or an error says why not."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from elastream.connectors.dataframes.checkpoint import Checkpoint
from elastream.errors import BaseUnusable

FILES = ("offsets/0", "commits/0", "state/0/0/1.delta")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint after its first batch. Its path has what separates words when Java prints a file's status."""
    made = tmp_path / "a; isDirectory=true, b"
    add(made, *FILES)
    return made


@pytest.fixture
def checkpoint(spark: SparkSession, folder: Path) -> Checkpoint:
    return Checkpoint(spark, f"file://{folder}")


def add(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_what_came_since_is_taken_back_whatever_the_path_is(checkpoint: Checkpoint, folder: Path) -> None:
    before = checkpoint.files()
    assert before == {f"file:{folder}/{name}" for name in FILES}
    add(folder, "offsets/1", "state/0/1/2; x.zip")
    checkpoint.keep_only(before)
    assert checkpoint.files() == before


def test_a_checkpoint_that_is_not_the_one_that_was_noted_is_left_alone(checkpoint: Checkpoint, folder: Path) -> None:
    with pytest.raises(
        BaseUnusable, match="has none of the files that it had before a rescale; give back the checkpoint"
    ):
        checkpoint.keep_only({"file:/elsewhere/offsets/0"})
    assert all((folder / name).exists() for name in FILES)


def test_a_file_that_cannot_be_deleted_is_named(
    checkpoint: Checkpoint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn:
        """A filesystem that does as Hadoop's do: no error, but False."""

        def __init__(self, files: Any) -> None:
            self.listFiles = files.listFiles

        def delete(self, path: Any, recursive: bool) -> bool:
            return False

    before = checkpoint.files()
    add(folder, "commits/1")
    monkeypatch.setattr(checkpoint, "_files", Stubborn(checkpoint._files))
    with pytest.raises(BaseUnusable, match="commits/1 could not be deleted"):
        checkpoint.keep_only(before)
