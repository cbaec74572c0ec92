"""`elastream check BASE APP`: what would become of a base, without changing it."""

from pathlib import Path

import pytest

from elastream.applications.load import load_app
from elastream.cli.main import main
from elastream.testing import LocalEngine

APP = """
from elastream import Topology, sources, workload

def topology(arrivals=None, *, names: str = "a,b"):
    stream = Topology("mine").source("in", sources.replay(workload.constant(1000, 1)))
    for name in names.split(","):
        stream = stream.map(name, lambda row: row, schema="id long", replicas=(1, 4))
    return stream.output("out")
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(APP)
    return f"{tmp_path}/mine.py:topology"


def files(base: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def run_until(app: str, base: Path, queued: str | None = None) -> None:
    """Run to the end, or until tuples wait for an operator."""
    handle = LocalEngine(virtual=True).start(load_app(app, None), str(base), policy=None)
    if queued is not None:
        handle.subscribe(lambda tick: handle.request_stop() if tick.queued[queued] else None)
    assert handle.await_end(60)


def test_a_new_base_begins_at_the_beginning(app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "base"), app]) == 0
    assert capsys.readouterr().out == (
        f"base {tmp_path / 'base'} is new: the run begins at the beginning\nthe run would begin; nothing was changed\n"
    )
    assert not (tmp_path / "base").exists()


def test_a_base_that_goes_on_says_where_and_which_operators_are_new_or_gone(
    app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base"
    run_until(app, base)
    before = files(base)
    assert main(["check", str(base), app, "--names", "a,c"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"base {base} resumes at entry ") and "1,000 read, 0 queued" in said[0]
    assert said[1:] == [
        "operator a: goes on with 1 replica, nothing waits",
        "operator c: new, begins with 1 replica",
        "operator b: no longer in the application, nothing waits for it",
        "output out: 1,000 rows are kept for readers",
        "the run would begin; nothing was changed",
    ]
    assert files(base) == before


def test_every_reason_to_refuse_a_run_is_said_and_the_exit_code_is_1(
    app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base"
    run_until(app, base, queued="a")
    assert main(["check", str(base), app, "--names", "c,b"]) == 1
    refused = [line for line in capsys.readouterr().out.splitlines() if line.startswith("refused: ")]
    assert len(refused) == 1 and "tuples wait for operator 'a', which this topology does not have" in refused[0]
    assert main(["check", str(base), app, "--names", "c,b", "--discard", "a"]) == 0
    assert "operator a: no longer in the application, " in (said := capsys.readouterr().out) and "are dropped" in said


def test_a_base_that_a_driver_holds_is_said(app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tmp_path / "base"
    with LocalEngine(hosts=1).start(load_app(app, None), str(base), policy=None) as handle:
        assert handle.await_begin(30)
        assert main(["check", str(base), app]) == 1
    assert f"stop it first: elastream stop {base}" in capsys.readouterr().out
