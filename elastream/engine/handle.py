"""The handle: how a run is watched, scaled, read and stopped."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from elastream.control import JournalEntry, Observation, StateMoved
from elastream.control.listeners import Listeners
from elastream.engine.checked_sizes import check_level, check_served, check_size
from elastream.engine.driver.build import Driver
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.lifecycle import Phase, RunLife
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.publish import Publisher
from elastream.engine.driver.requests import Discard, SetLevel, StopReading
from elastream.engine.driver.run_base import RunBase
from elastream.engine.driver.status import RunStatus
from elastream.engine.handle_html import run_html
from elastream.engine.hosts.link import HostLink
from elastream.engine.letters import read_letters
from elastream.engine.measure.controller import RunController
from elastream.engine.measure.observer import RunObserver
from elastream.engine.threads import within
from elastream.errors import ElastreamError, RunFailed, SettingError
from elastream.fleet import Level, LevelState
from elastream.lanes import Audit, OperatorCounts, audit
from elastream.lanes.readers import read_output
from elastream.lanes.store import Store
from elastream.settings import Settings
from elastream.state.table import state_table
from elastream.topology import DUE, Graph, Kind

log = logging.getLogger("elastream.run")

STOP_S = 3.0
"""How long `stop` waits for the tick's thread, whatever operators do."""

CLOSE_S = 1.0
"""How long it waits for Spark's part in it."""


@dataclass
class Run:
    """The parts of a run."""

    graph: Graph
    store: Store
    settings: Settings
    td_s: float
    base: RunBase
    life: RunLife
    driver: Driver
    observer: RunObserver
    controller: RunController
    publisher: Publisher
    housekeeping: Housekeeping
    hosts: HostLink
    failed_before: dict[str, int]
    """Per operator, the tuples that it had failed on when the run began."""
    resumed: str
    """How far a base was that goes on, in words; empty when it is new."""
    connected: Any = None
    """The edges, where there are any."""
    at_close: list[Callable[[], object]] = field(default_factory=list)
    log_file: str = ""
    """Empty if there is none."""


@dataclass(frozen=True)
class Overdue:
    """A work that takes long."""

    operator: str
    replicas: tuple[int, ...]
    rows: int
    seconds: float
    host: int

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.replicas))
        tuples = "one tuple" if self.rows == 1 else f"{self.rows} tuples"
        return f"{self.operator}, replica {numbers}: {tuples} for {self.seconds:.0f} s"


class RunListener:
    """Callbacks of a run, for `run(..., listeners=...)`. Override those you need; errors are logged and stop nothing."""

    def on_start(self, handle: "RunHandle") -> None:
        """Called before the first tick, in the thread that starts the run. An error here is raised by `run`."""

    def on_tick(self, tick: Tick) -> None:
        """Called after every committed tick, in the listeners' thread, up to 50 ms later. A slow one delays only listeners."""

    def on_decision(self, entry: JournalEntry) -> None:
        """Called after every interval of the control loop, in the listeners' thread."""

    def on_end(self, handle: "RunHandle") -> None:
        """Called once when the run is over and no tick comes any more, in the thread that stops it."""


class RunHandle:
    """A run in progress. Leaving a `with` block stops it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._closed = False
        self._draining = False
        self._ends: Listeners[RunHandle] = Listeners("ends", log)
        self.graph = run.graph
        self.base = run.store.uri
        self.store = run.store
        """The same, and shown without the secrets that an address may hold."""

    # -- what it is

    @property
    def policy(self) -> str:
        """The name of the policy that decides the sizes."""
        return self._run.controller.policy or "by hand"

    @property
    def settings(self) -> Settings:
        return self._run.settings

    @property
    def td_s(self) -> float:
        """The length of an interval."""
        return self._run.td_s

    @property
    def status(self) -> RunStatus:
        """The newest published status: frozen, at most 50 ms old while tuples flow. Any thread may read it."""
        return self._run.publisher.latest

    @property
    def timed(self) -> Mapping[str, float]:
        """Seconds that a tuple took in each operator when they were timed before the stream began."""
        return self.status.timed

    @property
    def active(self) -> bool:
        """True while ticks may still come."""
        return not self._closed and self._run.life.phase is not Phase.OVER

    # -- watching

    def totals(self, operator: str) -> OperatorCounts:
        """What an operator has done since the base began; zeros when that is nothing."""
        return self.status.totals.get(operator) or OperatorCounts()

    def observe(self, seconds: float = 1.0) -> Observation:
        """The last `seconds`."""
        return self._run.observer.over(seconds)

    @property
    def failures(self) -> tuple[str, ...]:
        """The first failure of every operator and kind of error in this run: the error, its line of code and the tuple."""
        return self.status.failures

    @property
    def new_dead_letters(self) -> dict[str, int]:
        """Per operator that failed on tuples in this run, how many; `dead_letters` has them."""
        before = self._run.failed_before
        failed = {name: counts.failed - before.get(name, 0) for name, counts in self.status.totals.items()}
        return {name: count for name, count in failed.items() if count}

    @property
    def resumed(self) -> str:
        """How far the base was when the run began, in words; empty when it was new."""
        return self._run.resumed

    @property
    def log_file(self) -> str:
        """The log of the run, in its base; empty if the base is on no disk."""
        return self._run.log_file

    def overdue(self, seconds: float = 10.0) -> list[Overdue]:
        """The works that have been under way for longer than this."""
        now = self._run.life.now()
        works = [
            Overdue(work.operator, work.replicas, work.rows, now - work.sent_s, work.host)
            for work in self.status.works
            if now - work.sent_s > seconds
        ]
        return sorted(works, key=lambda work: -work.seconds)

    def subscribe(self, listener: Callable[[Tick], object]) -> None:
        """Call this after every committed tick, as `RunListener.on_tick`."""
        self._run.controller.ticks.append(listener)

    def on_decision(self, listener: Callable[[JournalEntry], object]) -> None:
        """Call this after every interval of the control loop, as `RunListener.on_decision`."""
        self._run.controller.decisions.append(listener)

    def listen(self, listener: "RunListener | Callable[[Tick], object]") -> None:
        """Subscribe a listener to all that it listens to."""
        if isinstance(listener, RunListener):
            listener.on_start(self)
            self.subscribe(listener.on_tick)
            self.on_decision(listener.on_decision)
            self._ends.append(listener.on_end)
        else:
            self.subscribe(listener)

    # -- changing

    @property
    def fleet(self) -> tuple[LevelState, ...]:
        """Seats, hosts and executors: planned, asked for, there."""
        return self.status.fleet

    def set_level(self, level: str | Level, count: int) -> None:
        """Have so many seats in every host, hosts, or executors. They come in their own time; those too many hand over and go."""
        chosen = check_level(level, count)
        self._run.life.request(SetLevel(chosen, count))

    def scale(self, operator: str, replicas: int, reason: str = "by hand") -> None:
        """Change the replicas of an operator from the next tick on, until a policy decides otherwise.

        A lane that is switched off is drained. The `reason` goes into the report.
        """
        check_size(self.graph, operator, replicas)
        if self._run.controller.policy is not None:
            log.warning(
                "scale: the policy %s may change the replicas of %s again at once; policy=None leaves them to you",
                self.policy,
                operator,
            )
        self._run.life.resize(operator, replicas, reason)

    def discard(self, *operators: str) -> None:
        """Drop what waits for these operators; it is counted. What is being served is served."""
        for name in operators:
            check_served(self.graph, name, "discard", "lanes")
        self._run.life.request(Discard(operators))

    def drain(self) -> None:
        """Read nothing more, serve everything that waits, then end. The next run goes on reading.

        Returns at once; `await_end` waits until the run is over. Windows stay open for what the next run reads.
        """
        if self._run.connected is not None:
            self._run.connected.stop_reading()
        self._run.life.request(StopReading())
        self._draining = True

    @property
    def is_draining(self) -> bool:
        """True once `drain` was called."""
        return self._draining

    # -- the beginning and the end

    @property
    def stage(self) -> str:
        """How far the start is, in words, until the stream flows."""
        return self._run.life.stage if self._run.life.phase is Phase.STARTING else ""

    def await_begin(self, timeout_s: float | None = None) -> bool:
        """Wait until hosts are there and the stream flows; False when the time ran out first, or the run is over."""
        return self._run.life.wait_begun(timeout_s)

    def await_end(self, timeout_s: float | None = None) -> bool:
        """Wait until every source is exhausted and nothing waits; False when the time ran out first."""
        if not self._run.life.wait(timeout_s):
            return False
        self.stop()
        return True

    def stop(self) -> None:
        """Stop. What waits in the lanes waits for the next run with this base; what is not committed did not happen.

        A listener may call this too: the tick then ends after the turn it is in, and whoever waits for the end closes the run.
        """
        if self._closed:
            return
        life, controller = self._run.life, self._run.controller
        life.stop()
        if life.is_here or controller.is_here:
            return
        ended = life.wait(STOP_S)
        if not controller.close(STOP_S):
            log.warning("stop: listeners or the policy did not end within %g s; they are left alone", STOP_S)
        self._run.housekeeping.close(CLOSE_S)
        self._closed = True
        failure = self.failure
        self._ends.tell(self)
        # Spark may hang or be gone: the base is let go all the same.
        if self._run.connected is not None:
            within(CLOSE_S, self._run.connected.close)
        within(CLOSE_S, self._run.hosts.close)
        for close in self._run.at_close:
            within(CLOSE_S, close)
        self._run.base.close()
        if failure is None and not ended:
            failure = RunFailed("stop: the tick did not end; what it was writing did not happen")
        if failure:
            raise failure

    def request_stop(self) -> None:
        """Stop at the next tick, and return at once. Whoever waits for the end closes the run."""
        self._run.life.stop()

    @property
    def failure(self) -> ElastreamError | None:
        """Why the run ended by itself, if it did."""
        error = self._run.life.error
        if error is None or isinstance(error, ElastreamError):
            return error
        failure = RunFailed(
            f"tick {self.status.entry + 1} failed, nothing of it was applied: {type(error).__name__}: {error}"
        )
        failure.__cause__ = error
        return failure

    # -- reading

    def output(self, name: str) -> pa.Table:
        """The tuples that wait in an output, without their due times."""
        self._check_output(name)
        table = read_output(self._run.store, name)
        return table.drop_columns([DUE]) if DUE in table.column_names else table

    def state(self, operator: str) -> pa.Table:
        """What a keyed operator remembers, a row per key, as of the last entry."""
        return state_table(self._run.store, operator)

    @property
    def state_moves(self) -> list[StateMoved]:
        """What became of the states of keyed operators when their replicas changed, a receipt for each change."""
        return list(self.status.state_moves)

    def dead_letters(self, *, remove: bool = False) -> pa.Table:
        """The tuples on which an operator raised: which, where, and the error. With `remove` they are taken away."""
        return read_letters(self._run.store, remove=remove)

    def audit(self) -> Audit:
        return audit(self._run.store)

    def _check_output(self, name: str) -> None:
        if name not in self.graph or self.graph[name].kind is not Kind.OUTPUT:
            outputs = [o.name for o in self.graph.operators if o.kind is Kind.OUTPUT]
            raise SettingError(f"output {name!r}: not an output of {self.graph.name!r}; there are {outputs or 'none'}")

    def _repr_html_(self) -> str:
        failure = self.failure
        condition = f"failed: {failure}" if failure else (self.stage or "running") if self.active else "over"
        seen, letters = self.observe(5.0), self.new_dead_letters
        return run_html(self.graph.name, self.policy, str(self.store), condition, seen, letters)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except ElastreamError as failure:
            if error is None or isinstance(error, Exception):
                raise
            # Ctrl-C reaches Spark, too: whoever stops the program must not see a failure of the run instead.
            log.warning("the run ended while the program was being stopped: %s", failure)
