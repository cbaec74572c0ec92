"""Snapshots of a run: its newest status, observation and decisions as one document for viewers."""

import os
import socket
import threading
import time
import uuid
from collections import deque

from elastream.control import Decision, JournalEntry, Observation, OperatorObservation
from elastream.control.diagnosis import OperatorDiagnosis, diagnose
from elastream.control.load import LevelLoad, lane_ratios
from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.ports import Tick
from elastream.engine.handle import RunHandle, RunListener
from elastream.engine.operations.status_document import (
    LevelRow,
    Line,
    OperatorRow,
    StatusDocument,
    shortened,
)
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.lease import ThisMachine
from elastream.report.remarks import other_remarks

WINDOW_S = 2.0
"""Rates are means over this time."""

DRAINING = "draining"
"""The phase of a run that reads nothing more and serves what waits."""

LATEST_S = 6e10
"""About 1,900 years before and after 1970: a watermark beyond is not shown."""

MAX_LINES = 20
MAX_VETOES = 10
MAX_FAILURES = 5
MAX_OVERDUE = 3
MAX_PARTS = 20


class RunSnapshots(RunListener):
    """Listens to a run and describes it on request. `take` may be called by any thread."""

    def __init__(self, *, every_s: float = 1.0, log: str = "") -> None:
        """`every_s`: seconds between two documents, for their readers; `log`: the log file of the run."""
        self._every_s = every_s
        self._log = log
        self.run = uuid.uuid4().hex
        """The identity of the run in its documents."""
        self._machine = (socket.gethostname(), os.getpid(), ThisMachine().process())
        self._lock = threading.Lock()
        self._lines: deque[Line] = deque(maxlen=MAX_LINES)
        self._entry: JournalEntry | None = None
        self._search: dict[str, object] | None = None
        self._replicas: dict[str, int] = {}
        self._before: dict[str, OperatorCounts] = {}
        self._handle: RunHandle | None = None
        self._started_s = 0.0
        self._has_ticked = False

    def on_start(self, handle: RunHandle) -> None:
        self._handle = handle
        status = handle.status
        self._before, self._replicas, self._started_s = dict(status.totals), dict(status.replicas), status.at_s

    def on_tick(self, tick: Tick) -> None:
        if not self._has_ticked:
            # Starting up is no part of the run's time.
            self._has_ticked, self._started_s = True, tick.ended_s
        for name, reason in tick.resized.items():
            before, after = self._replicas.get(name, 0), tick.replicas.get(name, 0)
            self.note(tick.ended_s, "rescale", f"{name}: {before} -> {after}  {reason}")
        self._replicas = tick.replicas

    def on_decision(self, entry: JournalEntry) -> None:
        at_s = entry.observation.ended_s
        with self._lock:
            self._entry = entry
            if entry.proposal is not None and entry.proposal.search is not None:
                self._search = {"t_s": at_s - self._started_s, **vars(entry.proposal.search)}
        if entry.error:
            self.note(at_s, "error", entry.error)
        if entry.warning:
            self.note(at_s, "warning", entry.warning)
        for kind, words in other_remarks(entry):
            if kind != "veto":
                self.note(at_s, kind, words)

    def note(self, at_s: float, kind: str, words: str) -> None:
        """Add an event. The same one again replaces the one before: policies repeat themselves."""
        line = Line(at_s, kind, shortened(words))
        with self._lock:
            if self._lines and (self._lines[-1].kind, self._lines[-1].words) == (kind, line.words):
                self._lines.pop()
            self._lines.append(line)

    def take(self, error: str = "") -> StatusDocument:
        """The run now. `error` is the one that ended it."""
        handle = self._handle
        assert handle is not None, "snapshots listen to a run: run(..., listeners=[snapshots])"
        status, seen = handle.status, handle.observe(WINDOW_S)
        with self._lock:
            lines, entry, search = tuple(self._lines), self._entry, self._search
        decisions = entry.decisions if entry is not None else ()
        diagnosis = diagnose(seen, decisions)
        wanted = {one.operator: one.asked for one in decisions if one.asked > one.after}
        counts = {name: self._since_start(name, totals) for name, totals in status.totals.items()}
        rows = tuple(
            _operator_row(
                one, seen, diagnosis.operators[name], counts.get(name), wanted.get(name), status.watermarks.get(name)
            )
            for name, one in seen.operators.items()
        )
        host, pid, process = self._machine
        phase = status.phase.value if handle.active else Phase.OVER.value
        if handle.is_draining and phase == Phase.RUNNING.value:
            phase = DRAINING
        return StatusDocument(
            run=self.run,
            name=handle.graph.name,
            policy=handle.policy,
            base=str(handle.store),
            host=host,
            pid=pid,
            process=process,
            every_s=self._every_s,
            written_s=time.time(),
            started_s=self._started_s,
            phase=phase,
            stage=handle.stage,
            error=shortened(error),
            entry=status.entry,
            seconds=seen.seconds,
            tick_ms=seen.seconds / seen.ticks * 1e3 if seen.ticks else 0.0,
            in_per_s=_per_second(seen.entered, seen),
            out_per_s=_per_second(seen.finished, seen),
            queued=seen.queued,
            latency_mean_s=seen.latency_mean_s,
            latency_p95_s=seen.latency_p95_s,
            read=sum(
                counts[o.operator].processed
                for o in seen.operators.values()
                if o.role == "source" and o.operator in counts
            ),
            dropped=sum(row.dropped for row in rows),
            late=sum(row.late for row in rows),
            dead_letters=sum(row.dead_letters for row in rows),
            verdict=diagnosis.verdict if phase in (Phase.RUNNING.value, DRAINING) else "",
            operators=rows,
            levels=tuple(
                LevelRow(
                    level=s.level.value, there=s.there, planned=s.planned, max=s.most, problem=shortened(s.problem)
                )
                for s in status.fleet
            ),
            lines=lines,
            vetoes=tuple(shortened(_refused(one)) for one in decisions if one.asked != one.after and one.vetoes)[
                :MAX_VETOES
            ],
            failures=tuple(map(shortened, status.failures[-MAX_FAILURES:])),
            overdue=tuple(map(str, handle.overdue()[:MAX_OVERDUE])),
            search=search,
            log=self._log,
        )

    def _since_start(self, name: str, totals: OperatorCounts) -> OperatorCounts:
        """Counts of this run; a base counts from its own beginning."""
        before = self._before.get(name) or OperatorCounts()
        return OperatorCounts(
            processed=totals.processed - before.processed,
            failed=totals.failed - before.failed,
            late=totals.late - before.late,
            overflowed=totals.overflowed - before.overflowed,
        )


def _operator_row(
    one: OperatorObservation,
    seen: Observation,
    diagnosis: OperatorDiagnosis,
    counts: OperatorCounts | None,
    wanted: int | None,
    watermark_s: float | None,
) -> OperatorRow:
    counts = counts or OperatorCounts()
    load = LevelLoad(tuple(lane_ratios(one)))
    received = one.processed if one.role == "source" else one.received
    lag = dict(sorted(one.lag.items(), key=lambda part: -part[1])[:MAX_PARTS])
    return OperatorRow(
        name=one.operator,
        role=one.role,
        replicas=one.replicas,
        min=one.least,
        max=one.most,
        queued=one.queued,
        in_per_s=_per_second(received, seen),
        out_per_s=_per_second(one.processed, seen),
        wait_s=diagnosis.wait_s,
        service_s=diagnosis.service_s,
        busy=diagnosis.busy,
        load=load.most if load.ratios else None,
        balance=load.lb if load.ratios else None,
        dropped=counts.late + counts.overflowed,
        late=counts.late,
        dead_letters=counts.failed,
        wanted=wanted,
        watermark_s=watermark_s if watermark_s is not None and abs(watermark_s) < LATEST_S else None,
        lag=lag,
    )


def _refused(decision: Decision) -> str:
    return f"{decision.operator}: wants {decision.asked}, gets {decision.after} ({'; '.join(decision.vetoes)})  {decision.reason}"


def _per_second(count: int, seen: Observation) -> float:
    return round(count / seen.seconds, 3) if seen.seconds else 0.0
