"""Deliveries to the sinks of a user's application: recorded on disk as they happen, and compared with the ledger at the end.

The numbers in such an application mean nothing to us. A delivery has a name, and how many tuples its replica had taken before it
is part of that: so it is known which deliveries the ledger has committed, which came again, and whether two of them overlap.
"""

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from elastream.engine.worker.delivery import Delivery
from elastream.lanes import LaneId, LedgerState
from elastream.topology import Graph, Kind
from elastream.workload.replay import Replay
from elastream_lab.chaos.witness import Verdict

Sink = Callable[[pa.RecordBatch, Delivery], object]


class Recorded(msgspec.Struct, frozen=True):
    """One call of a sink: written when it begins, and once more when it has returned."""

    id: str
    operator: str
    replica: int
    first: int
    rows: int
    checksum: int
    returned: bool = False


@dataclass(frozen=True)
class RecordingSink:
    """Calls a sink, and notes each call in a file named by the process. One line is one write, so a kill cuts none."""

    function: Sink
    folder: str

    def __call__(self, batch: pa.RecordBatch, delivery: Delivery) -> None:
        call = Recorded(
            delivery.id, delivery.operator, delivery.replica, delivery.first, batch.num_rows, checksum_of(batch)
        )
        self._note(call)
        self.function(batch, delivery)
        self._note(msgspec.structs.replace(call, returned=True))

    def _note(self, call: Recorded) -> None:
        file = os.open(Path(self.folder) / f"{os.getpid()}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, msgspec.json.encode(call) + b"\n")
        finally:
            os.close(file)


def with_recording_sinks(graph: Graph, folder: Path) -> Graph:
    """The same graph, whose sinks with a function note their deliveries in `folder`."""
    operators = tuple(
        replace(o, function=RecordingSink(o.function, str(folder)))
        if o.kind is Kind.SINK and o.function is not None
        else o
        for o in graph.operators
    )
    return replace(graph, operators=operators)


def checksum_of(batch: pa.RecordBatch) -> int:
    """The same for the same rows in the same order, however they lie in memory."""
    return zlib.crc32(repr(batch.to_pylist()).encode("utf-8", "backslashreplace"))


class Deliveries:
    """The witness of a user's application. The driver says how far it is; deliveries are judged by the ledger at the end."""

    between = 1
    expected = None

    def __init__(self, graph: Graph, folder: Path) -> None:
        self._graph = graph
        self._folder = folder
        self._read: dict[str, int] = {}
        """Per file, how many bytes were read."""
        self._calls: dict[str, list[Recorded]] = {}
        """By the id of the delivery."""
        self._finished = 0
        folder.mkdir()

    def look(self, said: dict[str, Any]) -> int:
        self._finished = max(self._finished, said.get("finished", 0))
        return self._finished

    def feed(self) -> None:
        """An application feeds itself."""

    def is_settled(self, said: dict[str, Any]) -> bool:
        """At any moment: what the ledger has not committed is not judged."""
        return True

    def wrong(self) -> int:
        self._read_calls()
        return sum(len({(call.rows, call.checksum) for call in calls}) - 1 for calls in self._calls.values())

    def verdict(self, state: LedgerState, *, drained: bool) -> Verdict:
        changed = self.wrong()
        expected = lost = doubled = 0
        for head in self._graph.served:
            sink = self._graph.chain(head.name)[-1]
            if sink.kind is not Kind.SINK or sink.function is None:
                continue
            counted = state.totals[sink.name].processed if sink.name in state.totals else 0
            delivered = self._delivered(head.name, sink.name, state)
            # Of a chained sink it is not known which of its replica's tuples a delivery has: only how many.
            twice = _overlap(delivered) if head is sink else 0
            missing = counted - (sum(call.rows for call in delivered) - twice)
            expected += counted
            lost += max(0, missing)
            doubled += twice + max(0, -missing)
        if drained:
            for source in self._graph.sources:
                if isinstance(source.source, Replay):
                    made = state.totals[source.name].processed if source.name in state.totals else 0
                    lost += max(0, source.source.arrivals.total - made)
                    doubled += max(0, made - source.source.arrivals.total)
        repeated = sum(sum(not call.returned for call in calls) - 1 for calls in self._calls.values())
        return Verdict(expected, lost, doubled, changed, repeated, None)

    def _delivered(self, head: str, sink: str, state: LedgerState) -> list[Recorded]:
        """One call per delivery to a sink that has returned and that the ledger has committed."""
        found = []
        for calls in self._calls.values():
            call = calls[0]
            committed = call.first < state.queue(LaneId(head, call.replica)).consumed
            if call.operator == sink and committed and any(call.returned for call in calls):
                found.append(call)
        return found

    def _read_calls(self) -> None:
        for path in self._folder.glob("*.calls"):
            with path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path.name] = self._read.get(path.name, 0) + len(whole)
            for line in whole.splitlines():
                call = msgspec.json.decode(line, type=Recorded)
                self._calls.setdefault(call.id, []).append(call)


def _overlap(calls: Iterable[Recorded]) -> int:
    """Tuples that are in more than one delivery to the same replica."""
    reached: Counter[int] = Counter()
    twice = 0
    for call in sorted(calls, key=lambda call: call.first):
        stop = call.first + call.rows
        twice += max(0, min(stop, reached[call.replica]) - call.first)
        reached[call.replica] = max(reached[call.replica], stop)
    return twice
