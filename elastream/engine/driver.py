"""The driver's part of a tick: receipts in, one entry committed, the next plan in the mailbox.

All of it runs in Spark's stream thread, between two batches, or while the query stands still in a restart: no lock but for
the numbers that other threads ask for.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from elastream.control import Observation
from elastream.engine.again import Again
from elastream.engine.estimates import Estimates
from elastream.engine.executors import Capacity
from elastream.engine.first_plan import continued_plan, dropping, first_sizes
from elastream.engine.frame_plan import Tasks, make_again, make_frames, taken
from elastream.engine.loads import Loads
from elastream.engine.measure import Measurements, Scene, Tick
from elastream.engine.planner import WAITING_TASKS, Plan, left_after, make_plan, make_tasks, make_writes
from elastream.engine.settings import Settings
from elastream.engine.settle import Settled, by_chain, settle
from elastream.engine.source_states import check_checkpoint, exhausted, next_due_s, states_after, unread
from elastream.engine.stream_progress import StreamProgress
from elastream.engine.tick_source import Mail, Mailbox
from elastream.engine.work import Receipt, TaskWork
from elastream.errors import BaseInUse, BaseUnusable, SettingError
from elastream.lanes import Book, Cleanup, Entry, Hold, LaneId, Ledger, Store
from elastream.lanes.book import Counts
from elastream.lanes.readers import acknowledged
from elastream.topology import Graph, Kind

ACKNOWLEDGE_EVERY = 16
"""Ticks between two looks at how far the readers of outputs have come."""

WARM_S = 0.7
"""How long the first tasks wait, so that every worker process has been started before there is work for it."""


class Driver:
    """Keeps the book, the plan and the measurements of one run."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        store: Store,
        mailbox: Mailbox,
        *,
        capacity: Callable[[], Capacity],
        td_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._graph = graph
        self.settings = settings
        self._store = store
        self._mailbox = mailbox
        self._capacity_now = capacity
        self._capacity = Capacity(1, 1)
        self._clock = clock
        self._hold = Hold(store)
        self._ledger = Ledger(store)
        self._cleanup = Cleanup(store)
        self._book = Book()
        self._plan = Plan(0.0, settings.budget_s, {})
        self._estimates = Estimates()
        self._measurements = Measurements(graph)
        self._loads = Loads(graph, td_s)
        self.streams = StreamProgress(graph)
        self.td_s = td_s
        self._interval_s = 0.0
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()
        self._started_s = 0.0
        self._not_before_s = 0.0
        self._stopping = False
        self._restarting = False
        self._pausing = False
        self._lost: dict[str, Counts] = {}
        """What a restart dropped and no tick has told of yet."""
        self.restart = threading.Event()
        """Set when the query shall be stopped and started again, what is queued being lost."""
        self.paused = threading.Event()
        """Set when the query may be stopped and started again, nothing being lost."""
        self.stateful: frozenset[str] = frozenset()
        """The dataframe operators that keep state in Spark's checkpoint."""
        self.frame_tasks: dict[str, int] = {}
        """Per dataframe operator, how many tasks shall read its lanes in the next tick."""
        self.again_tasks: dict[str, int] = {}
        """The same of the tick before, for a batch that Spark repeats."""
        self._again: Again | None = None
        self.parked = threading.Event()
        """Set when no further tick will come: the query may be stopped."""
        self.ended = False
        """True when every source is exhausted and nothing waits."""
        self.error: BaseException | None = None
        self.on_tick: list[Callable[[Tick], object]] = []
        self.control: Callable[[], object] | None = None
        """The control loop's step, called after every tick."""
        self.at_close: list[Callable[[], object]] = []
        """Called when the run is over."""
        self.elastic = False
        """True when the control loop gives more replicas to operators that fall behind."""

    # -- before the first tick

    def open(self, discard: tuple[str, ...] = (), start: int | None = None) -> None:
        """Take the base, read the ledger, put the first plan into the mailbox.

        A new run's operators begin with `start` replicas, or as many of these as they may have.
        """
        self._capacity = self._capacity_now()
        self._hold.take()
        try:
            self._store.remove_unfinished("ledger")
            self._store.remove_unfinished("segments")
            self._book = self._ledger.load()
            if self._book.tick < 0:
                self._begin(start)
            else:
                self._go_on(discard)
            self._cleanup.sweep(self._book, self._again.segments - self._book.segments() if self._again else ())
        except OSError as error:
            self._hold.release()
            raise BaseUnusable(f"base {self._store}: cannot be read and written: {error}") from error
        except BaseException:
            self._hold.release()
            raise
        self._started_s = self._clock()
        self._send(warm=True)

    def _begin(self, start: int | None) -> None:
        self._plan = Plan(self._clock(), self.settings.budget_s, first_sizes(self._graph, start))
        self._commit(Entry(0, "", -1, self._clock(), plan=self._plan.to_json()))

    def _go_on(self, discard: tuple[str, ...]) -> None:
        self._plan = continued_plan(self._graph, self._book, discard, str(self._store))
        self._again = self._plan.again
        self._estimates = Estimates(self._plan.service_s, self._plan.fan_out)
        if discard:
            # What the user discards counts as dropped.
            entry = dropping(self._book, discard, self._clock())
            self._commit(Entry(**{**vars(entry), "plan": self._plan.to_json()}))

    # -- a restart

    def request_restart(self) -> None:
        """No tick comes until the query has been started again."""
        self._restarting = True

    def lose_queues(self) -> None:
        """While the query stands still: what waits is dropped, and counted. Tuples that have left stay where they are."""
        names = tuple(operator.name for operator in self._graph.served if operator.kind is not Kind.OUTPUT)
        entry = dropping(self._book, names, self._clock())
        self._lost = entry.counts
        self._plan_and_write(entry, frozenset())

    def request_pause(self) -> None:
        """No tick comes until `resume`; `paused` says when."""
        self._pausing = True

    def resume(self) -> None:
        """The next tick may come; called before the query runs again."""
        self._restarting = self._pausing = False
        self.restart.clear()
        self.paused.clear()
        self._send()

    # -- a tick

    def routing(self) -> str:
        """What the branches of streaming DataFrames need to route their rows in this tick."""
        queued = {
            name: tuple(len(self._book.queue(LaneId(name, lane))) for lane in lanes)
            for name, lanes in self._plan.active.items()
        }
        senders = [name for name, _, _ in self._plan.takes] + [source.name for source in self._graph.sources]
        loads = self._loads.of(self._plan.active, senders, left_after(self._plan, self._book))
        known = {name: state["once"] for name, state in self._book.sources.items() if "once" in state}
        work = TaskWork(
            self._book.tick + 1, self._plan.planned_s, self._plan.active, queued, {}, loads=loads, memories=known
        )
        return work.to_json()

    def writes(self) -> list[TaskWork]:
        """What Spark shall write in this tick, a lane each."""
        return make_writes(self._graph, self._plan, self._book, self._book.tick + 1)

    def is_applied(self, query: str, batch: int) -> bool:
        """True when Spark repeats a batch that the ledger has."""
        return self._book.run == query and batch <= self._book.batch

    def check_checkpoint(self, query: str) -> None:
        check_checkpoint(self._graph, self._book, query, str(self._store))
        if self._again is not None and self._book.run != query:
            raise SettingError(
                f"base {self._store}: was written with another checkpoint of Spark's, which has the state of its dataframe "
                "operators; give that one back, or begin with a new base"
            )

    def finish_tick(self, query: str, batch: int, receipts: list[Receipt]) -> None:
        """Commit what the tasks did together with the plan of the next tick, then let that tick begin."""
        settled = settle(self._graph, self.settings, self._book, receipts)
        if self.stateful:
            self._again = taken(self._plan, self._book, self.stateful)
        now = self._clock()
        self._capacity = self._capacity_now()
        entry = Entry(
            self._book.tick + 1,
            query,
            batch,
            now,
            settled.consumed + self._acknowledged(),
            settled.appended,
            dict(settled.schemas),  # type: ignore[arg-type]
            settled.counts,
            states_after(self._graph, self._book, settled, self.streams, query, now),
        )
        self.streams.add(settled)
        self._commit_with_plan(entry, settled)
        self._measure(settled, now)
        if self.control is not None:
            self.control()
        elif now - self._interval_s >= self.td_s:
            # Nobody decides, but routing by load wants to know how it was.
            self.end_interval()
        self._send()

    def _commit_with_plan(self, entry: Entry, settled: Settled) -> None:
        """The plan looks at the lanes as they are after this tick, so the book goes first, the write follows."""
        for head, members in by_chain(self._graph, settled.receipts).items():
            self._estimates.learn(head, members)
        self._plan_and_write(entry, settled.segments)

    def _plan_and_write(self, entry: Entry, segments: frozenset[str]) -> None:
        now = entry.at_s
        with self._lock:
            asked, self._asked = self._asked, {}
            freed = self._book.apply(entry)
            active = self._plan.active | {name: tuple(range(size)) for name, size in asked.items()}
            self._plan = make_plan(
                self._graph,
                self.settings,
                self._book,
                self._estimates,
                active,
                self._capacity.slots,
                now,
                elastic=self.elastic,
                wrote_s=self._plan.wrote_s,
                again=self._again,
            )
            self._book.plan = self._plan.to_json()
        self._write(Entry(**{**vars(entry), "plan": self._book.plan}))
        unused = segments - self._book.segments() - set(freed)
        self._cleanup.after_commit(self._book, [*freed, *unused])
        self._ledger.tidy(self._book)

    def _commit(self, entry: Entry) -> None:
        self._write(entry)
        self._book.apply(entry)

    def _write(self, entry: Entry) -> None:
        self._hold.renew()
        if not self._store.is_local and self._ledger.has(entry.tick):
            raise BaseInUse(f"base {self._store}: entry {entry.tick} was written by another driver; this one stops")
        try:
            self._ledger.commit(entry)
        except OSError as error:
            raise BaseUnusable(
                f"base {self._store}: entry {entry.tick} could not be written: {error}; nothing of the tick was applied: "
                "make room or mend the permissions, then start again with the same base"
            ) from error

    def _acknowledged(self) -> tuple[tuple[str, int, int], ...]:
        """What all readers of an output have read may go."""
        if self._book.tick % ACKNOWLEDGE_EVERY:
            return ()
        outputs = [o.name for o in self._graph.operators if o.kind is Kind.OUTPUT]
        read = []
        for name in (*outputs, "dead-letters"):
            queue = self._book.lanes.get(LaneId(name, 0))
            if queue is None or not len(queue):
                continue
            position = acknowledged(self._store, name)
            if position is not None and position > queue.consumed:
                read.append((name, 0, min(position, queue.appended) - queue.consumed))
        return tuple(read)

    def _measure(self, settled: Settled, now: float) -> None:
        if self._lost:
            counts: dict[str, Counts] = {name: dict(its) for name, its in settled.counts.items()}
            for name, its in self._lost.items():
                mine = counts.setdefault(name, {})
                mine["overflowed"] = mine.get("overflowed", 0) + its["overflowed"]
            settled, self._lost = replace(settled, counts=counts), {}
        tick = Tick(
            self._book.tick,
            self._started_s,
            now,
            settled,
            {name: len(lanes) for name, lanes in self._plan.active.items()},
            {operator.name: self._book.queued(operator.name) for operator in self._graph.served},
            min(max(0.0, self._not_before_s - self._started_s), now - self._started_s),
        )
        with self._lock:
            self._measurements.add(tick)
        self._loads.add(settled)
        self._started_s = now
        for listener in self.on_tick:
            listener(tick)

    def _send(self, warm: bool = False) -> None:
        """Let the next tick begin, now or when something is due; or none, when the run is over."""
        tasks = make_tasks(self._graph, self._plan, self._book, self._book.tick + 1, self._capacity.cores, self._loads)
        if warm:
            lanes = sum(operator.replicas.most for operator in self._graph.served if not operator.waits)
            if any(operator.waits for operator in self._graph.served):
                lanes += self._capacity.cores * WAITING_TASKS
            idle = TaskWork(self._book.tick + 1, self._plan.planned_s, {}, {}, {}, warm_s=WARM_S)
            tasks += [idle] * max(0, min(self._capacity.slots, lanes + len(self._graph.sources)) - len(tasks))
        self.ended = self._is_drained()
        over = self._stopping or (self.ended and not warm)
        stands = over or self._restarting or self._pausing
        wait_until = math.inf if stands else 0.0 if warm else self._next_due()
        self._not_before_s = wait_until
        frames = make_frames(self._graph, self._plan, self._book, self._book.tick + 1, self._capacity.cores)
        again = make_again(self._again, self._book) if self._again else {}
        self.frame_tasks, self.again_tasks = ({name: len(its) for name, its in t.items()} for t in (frames, again))
        self._mailbox.put(
            Mail(
                self._book.tick,
                # JSON knows no infinity that every reader takes; this is after the sun has gone out.
                min(wait_until, 1e18),
                tuple(task.to_json() for task in tasks),
                _as_json(frames),
                self._again.entry if self._again else -1,
                _as_json(again),
            )
        )
        if over:
            self.parked.set()
        elif self._restarting:
            self.restart.set()
        elif self._pausing:
            self.paused.set()

    def _next_due(self) -> float:
        if self._plan.takes:
            return 0.0
        return min(self._clock() + self.settings.heartbeat_s, next_due_s(self._graph, self._book))

    def _is_drained(self) -> bool:
        if self._again is not None and self._again.lanes:
            # Spark moves the watermark when a batch is over: what is final by it comes with the next one.
            return False
        served = (operator for operator in self._graph.served if operator.kind is not Kind.OUTPUT)
        return exhausted(self._graph, self._book) and not any(self._book.queued(o.name) for o in served)

    # -- asked by other threads

    def scale(self, operator: str, replicas: int) -> None:
        if operator not in self._graph or self._graph[operator] not in self._graph.served:
            names = ", ".join(o.name for o in self._graph.served)
            raise SettingError(f"scale: no operator {operator!r} with replicas of its own; there are {names}")
        sizes = self._graph[operator].replicas
        if not sizes.least <= replicas <= sizes.most:
            raise SettingError(f"operator {operator!r}: replicas must be {sizes.least}..{sizes.most}, got {replicas}")
        with self._lock:
            self._asked[operator] = replicas

    def observe(self, seconds: float) -> Observation:
        with self._lock:
            return self._measurements.over(seconds, self._scene())

    def end_interval(self) -> Observation:
        """Everything since the last time this was asked, by the control loop."""
        with self._lock:
            observation = self._measurements.interval(self._scene())
        self._interval_s = observation.ended_s
        self._loads.learn(observation)
        return observation

    def know(self, service_s: dict[str, float]) -> None:
        """Service times from a benchmark, until the stream has shown its own."""
        self._estimates.service_s = service_s | self._estimates.service_s

    def _scene(self) -> Scene:
        waiting = unread(self._graph, self._book) | self.streams.unread()
        return Scene(
            self._book,
            self._plan.active,
            self._estimates,
            waiting,
            self.settings.budget_s,
            self._capacity.slots,
            self.streams.lag(),
        )

    def request_stop(self) -> None:
        self._stopping = True

    def close(self) -> None:
        for let_go in self.at_close:
            let_go()
        self._hold.release()

    @property
    def book(self) -> Book:
        return self._book


def _as_json(tasks: Tasks) -> dict[str, tuple[str, ...]]:
    return {name: tuple(task.to_json() for task in its) for name, its in tasks.items()}
