"""The turns of the tick: receipts enter, one entry is committed, works leave.

A turn takes whatever has come, and waits for nobody: a slow lane holds up no other. What other threads want (a size, a stop, the
commit of an edge's batch) they leave in `RunLife` or at the edges, and the next turn takes it.
"""

import math

import msgspec

from elastream import rules
from elastream.engine.clock import Clock
from elastream.engine.hosts.link import Event, HostLink
from elastream.engine.messages import Works
from elastream.engine.tick.entry_maker import EntryMaker
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.first_failures import FirstFailures
from elastream.engine.tick.group_mover import GroupMover, GroupMoves
from elastream.engine.tick.host_control import HostControl
from elastream.engine.tick.host_news import HostNews, Said
from elastream.engine.tick.life import Phase, RunLife
from elastream.engine.tick.merge import ReceiptMerger, TickResult, first_problem
from elastream.engine.tick.planner import Planner
from elastream.engine.tick.ports import Edges, Observer, Tick
from elastream.engine.tick.redirector import Redirector
from elastream.engine.tick.retirement import Retirement
from elastream.engine.tick.run_base import RunBase
from elastream.engine.tick.works import NextWorks
from elastream.fleet.engine_fleet import EngineFleet
from elastream.fleet.machines import Machines
from elastream.lanes.entries import Entry
from elastream.lanes.state import Applied
from elastream.settings import Settings
from elastream.topology import Graph, Kind


class Turns:
    """Makes one turn after another. All of it in the tick's thread, and nobody else changes the state."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        base: RunBase,
        estimates: Estimates,
        planner: Planner,
        hosts: HostLink,
        machines: Machines,
        observer: Observer,
        clock: Clock,
        life: RunLife,
        *,
        outputs: tuple[str, ...] = (),
        edges: Edges | None = None,
    ) -> None:
        """`outputs` are the operators that are read from outside."""
        self._graph = graph
        self._settings = settings
        self._base = base
        self._state = base.state
        self._estimates = estimates
        self._planner = planner
        self._hosts = hosts
        self._observer = observer
        self._clock = clock
        self._life = life
        self._edges = edges
        self.mover = GroupMover(
            base.state, planner.is_free, planner.roster, planner.keeper, planner.timers, planner.suspects
        )
        self.redirector = Redirector(graph, base.state, self.mover, planner.loads)
        self.retirement = Retirement(planner.roster, planner.keeper, self.mover.transfers, hosts)
        self._news = HostNews(graph, base, planner, self.mover.transfers, hosts, life)
        control = HostControl(planner.roster, hosts, self.retirement)
        self.fleet = EngineFleet(control, machines, clock.now, rules.MOST_WAITING)
        self._merger = ReceiptMerger(graph, settings)
        self.failures = FirstFailures(settings.stop_after_failures)
        self._entries = EntryMaker(settings, base, estimates, planner, clock, outputs)
        self.timed: dict[str, float] = {}
        """Seconds per tuple, as they were before the stream began."""
        self.count = 0
        """How many turns were made."""
        self.works = 0
        """How many works hosts were given."""
        self.turn_cpu_s = 0.0
        """CPU time that a turn with something to do takes now."""
        self.paused_until_s = -math.inf
        """Nothing is given out before."""
        self._turn_s = 0.0
        self._last_wall_s = clock.wall_s()

    def make(self, events: list[Event]) -> None:
        """Receipts -> entry -> plan -> works."""
        began, cpu_s = self._clock.now(), self._clock.cpu_s()
        self._base.keep()
        said, ended, refused = self._news.hear(events, began)
        batches = self._edges.take() if self._edges else []
        resized = self._take_asked()
        receipts = [receipt for _, receipt in said] + [receipt for batch in batches for receipt in batch.receipts]
        problem = first_problem(receipts)
        if problem is not None:
            raise problem
        self.failures.hear(receipts)
        result = self._merger.merge(self._state, receipts)
        entry = self._entries.make(result, said, batches, resized, began)
        applied = self._state.apply(entry) if entry is not None else None
        for receipt in receipts:
            self._estimates.learn(receipt)
        if self._planner.timers:
            self._planner.timers.hear([lane for receipt in receipts for lane in receipt.operators], began)
        self._free(said, applied, began)
        self.redirector.hear(result)
        split = self._redirect(began)
        moved = self._move_groups(resized, began)
        marks = self._planner.timers.advance(began, self._clock.wall_s()) if self._life.phase is Phase.RUNNING else {}
        planned = self._plan(began)
        if self._write(entry, planned, moved, marks) or ended:
            self._clean_up([*(applied.freed if applied else ()), *result.unused, *refused], ended)
        for batch in batches:
            batch.committed()
        self._send(planned, bool(resized or moved or split))
        if entry is not None:
            self._measure(entry, result)
        self.retirement.step(began)
        self.fleet.step()
        if self._life.phase is Phase.RUNNING:
            self._observer.step(began)
        self._note_cost(began, cpu_s, bool(receipts or planned.works))

    def pause(self, seconds: float) -> None:
        """Send no works for a while. Works under way are finished; tuples that wait stay."""
        self.paused_until_s = self._clock.now() + seconds

    def discard(self) -> None:
        """Drop all tuples that wait for operators, and count them. Outputs keep theirs."""
        self._planner.hold(o.name for o in self._graph.served if o.kind is not Kind.OUTPUT)

    def close(self) -> None:
        """No turn comes any more."""
        self._entries.close()

    # -- the steps of a turn

    def _take_asked(self) -> dict[str, int]:
        return {name: size for name, size in self._life.take().items() if size != self._state.sizes.get(name)}

    def _free(self, said: list[Said], applied: Applied | None, now: float) -> None:
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
        if not self.redirector or self._life.phase is not Phase.RUNNING:
            return False
        return self.redirector.look(now, self._clock.wall_s())

    def _move_groups(self, resized: dict[str, int], now: float) -> GroupMoves:
        """Keys follow the replicas."""
        for operator in resized:
            self.mover.follow(operator, now, self._clock.wall_s())
        if self._planner.keeper and self._life.phase is Phase.RUNNING:
            self.mover.spread(now)
            self._planner.keeper.look(now)
        moved, filled = self.mover.step(now)
        self._planner.filled(filled, now)
        return moved

    def _plan(self, now: float) -> NextWorks:
        if self._life.phase is not Phase.RUNNING or now < self.paused_until_s:
            return NextWorks()
        planned = self._planner.plan(now, self._clock.wall_s())
        if self._edges is not None:
            self._edges.plan(planned, now, self._clock.wall_s())
        return planned

    def _write(self, entry: Entry | None, planned: NextWorks, moved: GroupMoves, marks: dict[str, float]) -> bool:
        """The commit: what was done, which keys change hands, and what outside hands shall be given next.

        False when there is nothing to commit.
        """
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
        return entry is not None

    def _clean_up(self, freed: list[str], ended: list[str]) -> None:
        spare = self._edges.spare_from() if self._edges else self._state.entry + 1
        self._base.cleanup.after_commit(self._state, freed, ended, spare, self._planner.keeper.segments_in_use)

    def _send(self, planned: NextWorks, rerouted: bool) -> None:
        if rerouted:
            for host in self._planner.roster.hosts:
                self._hosts.send(host, self._planner.facts.routing())
        for host, works in planned.works.items():
            self._hosts.send(host, Works(works))
            self.works += len(works)

    def _measure(self, entry: Entry, result: TickResult) -> None:
        wall_s = entry.at_s
        queued = {name: self._state.queued(name) for name in self._state.sizes}
        # In a pause, all that is queued waits for a replica.
        paused = self._clock.now() < self.paused_until_s
        sizes, waiting = dict(self._state.sizes), queued if paused else self._planner.waiting()
        self._observer.add(Tick(entry.number, self._last_wall_s, wall_s, result, sizes, queued, waiting))
        self._last_wall_s = wall_s

    def _note_cost(self, began: float, cpu_s: float, worked: bool) -> None:
        """A slow driver or a slow storage makes works longer, not turns more frequent."""
        self.count += 1
        if worked:
            self.turn_cpu_s = rules.turn_cost(self.turn_cpu_s, self._clock.cpu_s() - cpu_s)
            self._turn_s = rules.turn_cost(self._turn_s, self._clock.now() - began)
        settings = self._settings
        self._planner.budget_s = rules.budget(settings.budget_s, settings.max_budget_s, self._turn_s)
