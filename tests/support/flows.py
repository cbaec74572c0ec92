"""Small topologies for tests: numbers flow in, ids can be counted at the end."""

import runpy
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastream import Graph, Topology, sources
from elastream.engine.handle import RunHandle
from elastream.lanes import Store
from elastream.lanes.readers import read_output
from elastream.lanes.state import LedgerState
from elastream.workload import constant
from elastream.workload.replay import Replay
from elastream_lab.chaos.flow import files_by_delivery as files_by_delivery
from elastream_lab.chaos.flow import tally as tally


def numbers(count: int, seconds: float = 0.5) -> Topology:
    """A topology with a source `in` of `count` ids, all due within `seconds`."""
    return Topology("test").source("in", sources.replay(constant(count / seconds, seconds))).topology


def replay_of(graph: Graph) -> Replay:
    """The replay that is the first source of a graph."""
    replay = graph.sources[0].source
    assert isinstance(replay, Replay)
    return replay


def same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def ids_in(folder: Path) -> Counter[int]:
    return Counter(int(word) for file in folder.glob("*.ids") for word in file.read_text().split())


def ids_of(handle: RunHandle, output: str = "out") -> Counter[Any]:
    table = handle.output(output)
    return Counter(table.column("id").to_pylist() if table.num_rows else [])


def check_tallies(base: str, count: int) -> None:
    """`tallies` is the output behind it, of the ids up to `count`: each result came once, and the last ones are true."""
    each = Counter((row["digit"], row["count"]) for row in read_output(Store(base), "tallies").to_pylist())
    assert set(each.values()) == {1}, "a tick's results came twice"
    final = {digit: max(n for d, n in each if d == digit) for digit in range(10)}
    assert final == dict.fromkeys(range(10), count // 10)


def each_once(count: int) -> Counter[int]:
    return Counter(range(count))


def ledger_of(handle: RunHandle) -> LedgerState:
    """The driver's own state, for what no status has. Only the driver's thread may change it."""
    return handle._run.base.state


def finish(handle: RunHandle, timeout_s: float = 400.0) -> None:
    assert handle.await_end(timeout_s), f"did not end: {handle.observe()}"


def wait_for(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.05)


def collect(events: list[Any], poll: Callable[[], Iterable[Any]], count: int = 1) -> None:
    """Poll until there are `count` events or more."""

    def are_there() -> bool:
        events.extend(poll())
        return len(events) >= count

    wait_for(are_there)


def said_by_example(name: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What an example prints when it is run as a script; the session of the tests becomes its own."""
    script = str(Path(__file__).parents[2] / "examples" / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *words])
        runpy.run_path(script, run_name="__main__")
    return capsys.readouterr().out
