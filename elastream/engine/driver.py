"""The driver's part of a tick: receipts in, one entry committed, the next plan in the mailbox.

All of it runs in Spark's stream thread, between two batches, or while the query stands still in a restart: no lock but for
the numbers that other threads ask for.
"""

import math
import threading
import time
from collections.abc import Callable

from elastream.control import Observation
from elastream.engine.again import Again
from elastream.engine.estimates import Estimates
from elastream.engine.executors import Capacity
from elastream.engine.first_plan import continued_plan, dropping, first_sizes
from elastream.engine.frame_plan import taken
from elastream.engine.keeper import Keeper
from elastream.engine.loads import Loads
from elastream.engine.mail import make_mail, make_routing
from elastream.engine.measure import Measurements, Scene, Tick
from elastream.engine.planner import Plan, make_plan, make_writes
from elastream.engine.settings import Settings
from elastream.engine.settle import Settled, by_chain, settle, with_lost
from elastream.engine.source_states import check_checkpoint, exhausted, next_due_s, states_after, unread
from elastream.engine.stream_progress import StreamProgress
from elastream.engine.tick_source import Mailbox
from elastream.engine.work import Receipt, TaskWork
from elastream.errors import SettingError
from elastream.lanes import Book, Entry, Store
from elastream.lanes.book import Counts
from elastream.topology import Graph, Kind


class Driver:
    """Keeps the plan and the measurements of one run; its keeper has the book."""

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
        self._outputs = tuple(operator.name for operator in graph.operators if operator.kind is Kind.OUTPUT)
        self.settings = settings
        self._base = str(store)
        self._keeper = Keeper(store)
        self._mailbox = mailbox
        self._capacity_now = capacity
        self._capacity = Capacity(1, 1)
        self._clock = clock
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
        with self._keeper.opening():
            if self.book.tick < 0:
                self._begin(start)
            else:
                self._go_on(discard)
            again = self._plan.again
            self._keeper.sweep(again.segments - self.book.segments() if again else ())
        self._started_s = self._clock()
        self._send(warm=True)

    def _begin(self, start: int | None) -> None:
        self._plan = Plan(self._clock(), self.settings.budget_s, first_sizes(self._graph, start))
        self._keeper.commit(Entry(0, "", -1, self._clock(), plan=self._plan.to_json()))

    def _go_on(self, discard: tuple[str, ...]) -> None:
        self._plan = continued_plan(self._graph, self.book, discard, self._base, self.settings.t_out_s)
        self._estimates = Estimates(self._plan.service_s, self._plan.fan_out)
        if discard:
            # What the user discards counts as dropped.
            entry = dropping(self.book, discard, self._clock())
            self._keeper.commit(Entry(**{**vars(entry), "plan": self._plan.to_json()}))

    # -- a restart

    def request_restart(self) -> None:
        """No tick comes until the query has been started again."""
        self._restarting = True

    def lose_queues(self) -> None:
        """While the query stands still: what waits is dropped, and counted. Tuples that have left stay where they are."""
        names = tuple(operator.name for operator in self._graph.served if operator.kind is not Kind.OUTPUT)
        entry = dropping(self.book, names, self._clock())
        self._lost = entry.counts
        self._plan_and_write(entry, frozenset(), self._plan.again)

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
        return make_routing(self._graph, self._plan, self.book, self._loads, self._clock()).to_json()

    def writes(self) -> list[TaskWork]:
        """What Spark shall write in this tick, a lane each."""
        return make_writes(self._graph, self._plan, self.book, self.book.tick + 1)

    def is_applied(self, query: str, batch: int) -> bool:
        """True when Spark repeats a batch that the ledger has."""
        return self.book.run == query and batch <= self.book.batch

    def check_checkpoint(self, query: str) -> None:
        check_checkpoint(self._graph, self.book, query, self._base)
        if self._plan.again is not None and self.book.run != query:
            raise SettingError(
                f"base {self._base}: was written with another checkpoint of Spark's, which has the state of its dataframe "
                "operators; give that one back, or begin with a new base"
            )

    def finish_tick(self, query: str, batch: int, receipts: list[Receipt]) -> None:
        """Commit what the tasks did together with the plan of the next tick, then let that tick begin."""
        settled = settle(self._graph, self.settings, self.book, receipts)
        again = taken(self._plan, self.book, self.stateful) if self.stateful else self._plan.again
        now = self._clock()
        self._capacity = self._capacity_now()
        entry = Entry(
            self.book.tick + 1,
            query,
            batch,
            now,
            settled.consumed + self._keeper.acknowledged(self._outputs),
            settled.appended,
            dict(settled.schemas),  # type: ignore[arg-type]
            settled.counts,
            states_after(self._graph, self.book, settled, self.streams, query, now),
        )
        self.streams.add(settled)
        self._commit_with_plan(entry, settled, again)
        self._measure(settled, now)
        if self.control is not None:
            self.control()
        elif now - self._interval_s >= self.td_s:
            # Nobody decides, but routing by load wants to know how it was.
            self.end_interval()
        self._send()

    def _commit_with_plan(self, entry: Entry, settled: Settled, again: Again | None) -> None:
        """The plan looks at the lanes as they are after this tick, so the book goes first, the write follows."""
        for head, members in by_chain(self._graph, settled.receipts).items():
            self._estimates.learn(head, members)
        self._plan_and_write(entry, settled.segments, again)

    def _plan_and_write(self, entry: Entry, segments: frozenset[str], again: Again | None) -> None:
        now = entry.at_s
        with self._lock:
            asked, self._asked = self._asked, {}
            freed = self.book.apply(entry)
            active = self._plan.active | {name: tuple(range(size)) for name, size in asked.items()}
            self._plan = make_plan(
                self._graph,
                self.settings,
                self.book,
                self._estimates,
                active,
                self._capacity.slots,
                now,
                elastic=self.elastic,
                wrote_s=self._plan.wrote_s,
                again=again,
            )
            self.book.plan = self._plan.to_json()
        self._keeper.write(Entry(**{**vars(entry), "plan": self.book.plan}))
        self._keeper.tidy(freed, segments)

    def _measure(self, settled: Settled, now: float) -> None:
        if self._lost:
            settled, self._lost = with_lost(settled, self._lost), {}
        tick = Tick(
            self.book.tick,
            self._started_s,
            now,
            settled,
            {name: len(lanes) for name, lanes in self._plan.active.items()},
            {operator.name: self.book.queued(operator.name) for operator in self._graph.served},
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
        self.ended = self._is_drained()
        over = self._stopping or (self.ended and not warm)
        # Other threads set these: what the mail says and what is told below must be of one moment.
        restarting, pausing = self._restarting, self._pausing
        stands = over or restarting or pausing
        self._not_before_s = math.inf if stands else 0.0 if warm else self._next_due()
        mail = make_mail(self._graph, self._plan, self.book, self._capacity, self._loads, self._not_before_s, warm=warm)
        self.frame_tasks, self.again_tasks = (
            {name: len(its) for name, its in t.items()} for t in (mail.lanes, mail.again)
        )
        self._mailbox.put(mail)
        if over:
            self.parked.set()
        elif restarting:
            self.restart.set()
        elif pausing:
            self.paused.set()

    def _next_due(self) -> float:
        if self._plan.takes:
            return 0.0
        return min(self._clock() + self.settings.heartbeat_s, next_due_s(self._graph, self.book))

    def _is_drained(self) -> bool:
        if self._plan.again is not None and self._plan.again.lanes:
            # Spark moves the watermark when a batch is over: what is final by it comes with the next one.
            return False
        served = (operator for operator in self._graph.served if operator.kind is not Kind.OUTPUT)
        return exhausted(self._graph, self.book) and not any(self.book.queued(o.name) for o in served)

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
        waiting = unread(self._graph, self.book) | self.streams.unread()
        return Scene(
            self.book,
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
        self._keeper.close()

    @property
    def book(self) -> Book:
        return self._keeper.book
