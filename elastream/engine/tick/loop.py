"""The tick: one turn of the driver. Receipts enter, one entry is committed, works leave.

All of it runs in one thread. A turn takes whatever has come, and waits for nobody: a slow lane holds up no other. What other
threads want (a size, a stop, the commit of an edge's batch) they leave here, and the next turn takes it.
"""

import gc
import logging
import time
from collections.abc import Iterable

import msgspec

from elastream import rules
from elastream.engine.clock import Clock
from elastream.engine.hosts.link import Event, HostCame, HostLink, HostSaid, HostWent
from elastream.engine.messages import Receipt, Routing, SourceWork, Welcome, Works
from elastream.engine.tick.check_receipts import ReceiptCheck
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.group_mover import GroupMover, GroupMoves
from elastream.engine.tick.letter_bounds import LetterBounds
from elastream.engine.tick.life import Phase, RunLife
from elastream.engine.tick.merge import ReceiptMerger, TickResult, first_problem
from elastream.engine.tick.planner import Planner
from elastream.engine.tick.ports import EdgeBatch, Edges, Observer, Tick
from elastream.engine.tick.redirector import Redirector
from elastream.engine.tick.roster import Seats
from elastream.engine.tick.run_base import RunBase
from elastream.engine.tick.works import NextWorks, UnderWay
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import RunFailed
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.state import Applied, Entry
from elastream.settings import Settings
from elastream.topology import Graph

log = logging.getLogger("elastream.tick")

HOSTS_S = 120.0
"""How long the first host may take to come: a machine may have to be started for it."""

ALL_HOSTS_S = 5.0
"""How long the others may take after the first, before the stream begins without them."""

STOP_S = 2.0
"""How long works under way may still go on after a stop; then they did not happen."""

SHORTEST_REST_S = 0.0002
"""A shorter rest would be longer than it is meant to be."""

ESTIMATES_S = 2.0
"""Between two entries with what was learned of the operators."""


class TickLoop:
    """The driver's thread."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        base: RunBase,
        estimates: Estimates,
        planner: Planner,
        hosts: HostLink,
        observer: Observer,
        clock: Clock,
        life: RunLife,
        *,
        first_entry: Entry,
        wanted_hosts: int,
        edges: Edges | None = None,
        time_for_s: float = 0.0,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._base = base
        self._state = base.state
        self._estimates = estimates
        self._planner = planner
        self._merger = ReceiptMerger(graph, settings)
        self._check = ReceiptCheck(graph, base.state)
        self.mover = GroupMover(
            base.state, planner.is_free, planner.roster, planner.keeper, planner.timers, planner.suspects
        )
        self.redirector = Redirector(graph, base.state, self.mover, planner.loads)
        self._letters = LetterBounds(base.store, settings)
        self._hosts = hosts
        self._observer = observer
        self._clock = clock
        self._first_entry = first_entry
        self._wanted_hosts = wanted_hosts
        self._edges = edges
        self._time_for_s = time_for_s
        self._outputs = tuple(first_entry.outputs or ())
        self.life = life
        self._replaced: dict[int, str] = {}
        """The incarnation of each host that was told to end last: once is enough."""
        self._ended: list[str] = []
        """Segment files that hosts have ended since the last commit."""
        self.drained = False
        self.timed: dict[str, float] = {}
        """Seconds per tuple, as they were before the stream began."""
        self.turn_cpu_s = 0.0
        self._turn_s = 0.0
        self._learned_s = 0.0
        self._last_wall_s = clock.wall_s()
        self.turns = 0
        self.works = 0

    def discard(self, operators: Iterable[str]) -> None:
        """Drop what waits for these operators now, and count it. What is under way is served. Any thread may call this."""
        names = frozenset(operators)
        self.life.call(lambda: self._planner.held.update(lane for lane in self._state.lanes if lane.operator in names))

    # -- the thread

    def run(self) -> None:
        """From the first host to the end."""
        self.life.enter()
        error: BaseException | None = None
        try:
            self._commit(self._first_entry)
            self._begin()
            # Collecting garbage among all that was imported would hold a turn up for a tenth of a second.
            gc.freeze()
            self._planner.begin(self._clock.now())
            while not self._is_over():
                self._rest()
                self.turn(self._hosts.poll(self._patience_s()))
            self._let_finish()
        except BaseException as raised:
            error = raised
        gc.unfreeze()
        self._letters.close()
        self.life.over(error)

    def turn(self, events: list[Event]) -> None:
        """Receipts -> entry -> plan -> works."""
        began, cpu_s = self._clock.now(), time.thread_time()
        self._base.keep()
        said = self._hear(events, began)
        batches = self._edges.take() if self._edges else []
        resized = self._take_asked()
        receipts = [receipt for _, receipt in said] + [receipt for batch in batches for receipt in batch.receipts]
        problem = first_problem(receipts)
        if problem is not None:
            raise problem
        result = self._merger.merge(self._state, receipts)
        entry = self._entry(result, said, batches, resized, began)
        applied = self._state.apply(entry) if entry is not None else None
        for receipt in receipts:
            self._estimates.learn(receipt)
        if self._planner.timers:
            self._planner.timers.hear(lane for receipt in receipts for lane in receipt.operators)
        self._free(said, applied, began)
        self.redirector.hear(result)
        split = self._redirect(began)
        moved = self._move_groups(resized, began)
        marks = self._planner.timers.advance()
        planned = self._plan(began)
        self._write(entry, applied, planned, result, moved, marks)
        for batch in batches:
            batch.committed()
        self._send(planned, bool(resized or moved or split))
        if entry is not None:
            self._measure(entry, result)
        if self.life.phase is Phase.RUNNING:
            self._observer.step(began)
        self._note_cost(began, cpu_s, bool(receipts or planned.works))

    # -- the steps of a turn

    def _hear(self, events: list[Event], now: float) -> list[tuple[UnderWay, Receipt]]:
        """Hosts that came and went, and the receipts of works that are known: others are of zombies."""
        said = []
        ended: list[str] = []
        for event in events:
            if isinstance(event, HostSaid):
                seats = self._planner.roster.hosts.get(event.host)
                if seats is None or seats.incarnation != event.incarnation:
                    continue
                ended += event.ended
                for receipt in event.receipts:
                    known = self._planner.under_way.get(receipt.work)
                    if known is None or known.host != event.host:
                        continue
                    problem = self._check.problem(known, receipt)
                    if problem is None:
                        said.append((known, receipt))
                    else:
                        log.warning("host %d tells of %s; it is replaced", event.host, problem)
                        self._hosts.replace(event.host)
            elif isinstance(event, HostCame):
                self._planner.came(Seats(event.host, event.incarnation, event.pid, event.machine, event.executor))
                self._base.cleanup.host_came(event.incarnation)
                self._hosts.send(event.host, Welcome(self._state.schemas))
                self._hosts.send(event.host, self._routing())
            elif isinstance(event, HostWent):
                self._host_went(event, said, now)
            else:
                raise RunFailed(event.reason)
        self._ended = ended
        return said

    def _host_went(self, event: HostWent, said: list[tuple[UnderWay, Receipt]], now: float) -> None:
        # What it said before it went counts: those works are done.
        for known, receipt in said:
            if known.host == event.host and receipt.problem is None:
                seats = self._planner.roster.hosts.get(event.host)
                if seats is not None:
                    seats.works.discard(known.id)
        lost = self._planner.lost(event.host, now)
        self.mover.transfers.host_went(event.host)
        self._base.cleanup.host_went(event.incarnation)
        if self.life.phase is Phase.RUNNING:
            names = sorted({work.operator for work in lost if work.operator})
            log.warning("host %d is gone; %d works go back to %s", event.host, len(lost), ", ".join(names) or "nobody")

    def _take_asked(self) -> dict[str, int]:
        return {name: size for name, size in self.life.take().items() if size != self._state.sizes.get(name)}

    def _entry(
        self,
        result: TickResult,
        said: list[tuple[UnderWay, Receipt]],
        batches: list[EdgeBatch],
        resized: dict[str, int],
        now: float,
    ) -> Entry | None:
        """What is to be committed; None when nothing is."""
        read = self._base.read_from_outside(self._outputs, now) + self._discarded(result)
        expired = self._expired(read, now)
        if not (said or batches or resized or read or expired):
            return None
        finished: list[SourceWork] = [known.source for known, _ in said if known.source is not None]
        learned = {}
        if now - self._learned_s >= ESTIMATES_S:
            self._learned_s, learned = now, self._estimates.known()
        entry = Entry(
            self._state.entry + 1,
            self._clock.wall_s(),
            result.consumed + read + ([(DEAD_LETTERS, 0, expired)] if expired else []),
            result.appended,
            result.counts | ({DEAD_LETTERS: OperatorCounts(expired=expired)} if expired else {}),
            self._planner.replays.states_after(finished) if finished else {},
            sizes=resized,
            estimates=learned,
            changes=result.changes,
            wholes=result.wholes,
        )
        for batch in batches:
            entry = batch.entry(entry, result)
        return entry

    def _expired(self, read: list[tuple[str, int, int]], now: float) -> int:
        """Dead letters that go because they are too many or too old."""
        acknowledged = sum(rows for name, _, rows in read if name == DEAD_LETTERS)
        return self._letters.expired(self._state, acknowledged, now, self._clock.wall_s())

    def _discarded(self, result: TickResult) -> list[tuple[str, int, int]]:
        """Everything that waits in lanes that are to be discarded and have no work under way."""
        dropped = []
        for lane in [lane for lane in self._planner.held if not self._planner.is_busy(lane)]:
            self._planner.held.discard(lane)
            rows = len(self._state.lanes[lane])
            if rows and lane not in self._state.given:
                dropped.append((*lane, rows))
                result.overflowed[lane] += rows
                result.counts.setdefault(lane.operator, OperatorCounts()).overflowed += rows
        return dropped

    def _free(self, said: list[tuple[UnderWay, Receipt]], applied: Applied | None, now: float) -> None:
        """The lanes of works that are done may have others; those that got tuples may be due."""
        for known, receipt in said:
            if receipt.timed is not None:
                self.timed = receipt.timed
                self._estimates.seed(receipt.timed)
            if known.task is not None:
                self._planner.keeper.done(known.task, receipt)
                self.mover.transfers.done(known.task)
            self._planner.done(known.id, now)
        if applied is not None:
            self._planner.filled(applied.filled, now)

    def _redirect(self, now: float) -> bool:
        """Tuples, key groups and keys go to replicas with more room; True when senders must be told."""
        if not self.redirector or self.life.phase is not Phase.RUNNING:
            return False
        return self.redirector.look(now, self._clock.wall_s())

    def _move_groups(self, resized: dict[str, int], now: float) -> GroupMoves:
        """Keys follow the replicas."""
        for operator in resized:
            self.mover.follow(operator, now, self._clock.wall_s())
        if self._planner.keeper and self.life.phase is Phase.RUNNING:
            self.mover.spread(now)
            self._planner.keeper.look(now)
        moved, filled = self.mover.step(now)
        self._planner.filled(filled, now)
        return moved

    def _plan(self, now: float) -> NextWorks:
        if self.life.phase is not Phase.RUNNING:
            return NextWorks()
        planned = self._planner.plan(now, self._clock.wall_s())
        if self._edges is not None:
            self._edges.plan(planned, now, self._clock.wall_s())
        return planned

    def _write(
        self,
        entry: Entry | None,
        applied: Applied | None,
        planned: NextWorks,
        result: TickResult,
        moved: GroupMoves,
        marks: dict[str, float],
    ) -> None:
        """The commit: what was done, which keys change hands, and what outside hands shall be given next."""
        if moved or marks or planned.given or planned.offer >= 0:
            if entry is None:
                entry = Entry(self._state.entry + 1, self._clock.wall_s())
                self._state.apply(entry)
            entry = msgspec.structs.replace(
                entry, given=planned.given, offer=planned.offer, owners=moved, watermarks=marks
            )
            self._state.offer = max(self._state.offer, planned.offer)
        if entry is not None:
            self._base.write(entry)
        if self._edges is not None:
            self._edges.begin()
        if entry is not None or self._ended:
            freed = [*(applied.freed if applied else ()), *result.unused]
            spare = self._edges.spare_from() if self._edges else self._state.entry + 1
            self._base.cleanup.after_commit(self._state, freed, self._ended, spare)

    def _send(self, planned: NextWorks, rerouted: bool) -> None:
        if rerouted:
            for host in self._planner.roster.hosts:
                self._hosts.send(host, self._routing())
        for host, works in planned.works.items():
            self._hosts.send(host, Works(works))
            self.works += len(works)

    def _routing(self) -> Routing:
        return Routing(self._state.sizes, self._state.owners, self._planner.loads.splits)

    def _measure(self, entry: Entry, result: TickResult) -> None:
        wall_s = entry.at_s
        queued = {name: self._state.queued(name) for name in self._state.sizes}
        self._observer.add(Tick(entry.number, self._last_wall_s, wall_s, result, dict(self._state.sizes), queued))
        self._last_wall_s = wall_s

    def _note_cost(self, began: float, cpu_s: float, worked: bool) -> None:
        """A slow driver or a slow storage makes works longer, not turns more frequent."""
        self.turns += 1
        if worked:
            self.turn_cpu_s = rules.turn_cost(self.turn_cpu_s, time.thread_time() - cpu_s)
            self._turn_s = rules.turn_cost(self._turn_s, self._clock.now() - began)
        settings = self._settings
        self._planner.budget_s = rules.budget(settings.budget_s, settings.max_budget_s, self._turn_s)

    # -- between turns

    def _rest(self) -> None:
        """Turns take at most a share of a core: what comes meanwhile is taken together."""
        rest_s = rules.rest(self.turn_cpu_s)
        if rest_s > SHORTEST_REST_S:
            self._clock.sleep(rest_s)

    def _patience_s(self) -> float:
        now = self._clock.now()
        next_s = self._planner.next_s(self._clock.wall_s(), now)
        return min(max(0.0, next_s - now), rules.IDLE_S)

    def _is_over(self) -> bool:
        if self.life.phase is not Phase.RUNNING:
            return True
        self._check_overdue()
        self.drained = self._is_drained()
        return self.drained

    def _is_drained(self) -> bool:
        if self._planner.under_way or not self._planner.replays.exhausted():
            return False
        if self._edges is not None and not self._edges.is_drained():
            return False
        if any(self._state.queued(name) for name in self._state.sizes if name not in self._outputs):
            return False
        return self._planner.timers.end()

    def _check_overdue(self) -> None:
        """With `work_timeout_s`, a host whose work does not come back is replaced."""
        limit_s = self._settings.work_timeout_s
        if limit_s is None:
            return
        now = self._clock.now()
        for host in {known.host for known in self._planner.under_way.values() if now - known.sent_s > limit_s}:
            seats = self._planner.roster.hosts.get(host)
            if seats is not None and seats.incarnation != self._replaced.get(host):
                self._replaced[host] = seats.incarnation
                log.warning("host %d: a work takes longer than %g s; the host is replaced", host, limit_s)
                self._hosts.replace(host)

    # -- beginning and end

    def _begin(self) -> None:
        """Wait for hosts, time the operators, and let the replays begin."""
        started = self._clock.now()
        first_s: float | None = None
        while len(self._planner.roster.hosts) < self._wanted_hosts:
            if self.life.phase is not Phase.STARTING:
                return
            now = self._clock.now()
            if first_s is None and self._planner.roster.hosts:
                first_s = now
            if first_s is not None and now - first_s > ALL_HOSTS_S:
                break
            if first_s is None and now - started > HOSTS_S:
                raise RunFailed(f"hosts: none came within {HOSTS_S:.0f} s; look at the cluster's page for free slots")
            self.turn(self._hosts.poll(0.05))
        self._time_operators()
        for operator in self._graph.reached_by_keys:
            # A run that ended in the middle of a change, or had other limits.
            self.mover.follow(operator, self._clock.now(), self._clock.wall_s())
        origins = self._planner.replays.begin(self._clock.wall_s())
        self._commit(Entry(self._state.entry + 1, self._clock.wall_s(), sources=origins))
        self.life.begun()

    def _time_operators(self) -> None:
        """Before the stream flows: a few of its tuples go through the operators. One that hangs does not hold up the run."""
        totals = self._planner.replays.totals()
        if not self._time_for_s or not totals:
            return
        sent = self._planner.time_work(totals, self._time_for_s, self._clock.now())
        if sent is None:
            return
        host, work = sent
        self._hosts.send(host, Works([work]))
        until = self._clock.now() + self._time_for_s + ALL_HOSTS_S
        while work.id in self._planner.under_way and self.life.phase is Phase.STARTING:
            if self._clock.now() > until:
                log.warning("timing the operators takes longer than %g s; the stream begins without", self._time_for_s)
                self._hosts.replace(host)
                return
            self.turn(self._hosts.poll(0.05))

    def _let_finish(self) -> None:
        """Works under way may come back for a while; those that do not, did not happen."""
        until = self._clock.now() + STOP_S
        while (left_s := until - self._clock.now()) > 0 and self._planner.under_way:
            self.turn(self._hosts.poll(min(left_s, 0.1)))

    def _commit(self, entry: Entry) -> None:
        self._state.apply(entry)
        self._base.write(entry)
