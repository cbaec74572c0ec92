"""The driver's thread: a run begins when its hosts have come, then turn follows turn, and it ends when nothing is left to do."""

import gc
import logging

from elastream import rules
from elastream.engine.clock import Clock
from elastream.engine.hosts.link import HostLink
from elastream.engine.messages import Works
from elastream.engine.tick.life import Phase, RunLife
from elastream.engine.tick.planner import Planner
from elastream.engine.tick.ports import Edges
from elastream.engine.tick.run_base import RunBase
from elastream.engine.tick.turns import Turns
from elastream.errors import RunFailed
from elastream.lanes.entries import Entry
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


class TickLoop:
    """Says when a turn comes, and when none does any more."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        base: RunBase,
        planner: Planner,
        turns: Turns,
        hosts: HostLink,
        clock: Clock,
        life: RunLife,
        *,
        first_entry: Entry,
        edges: Edges | None = None,
        time_for_s: float = 0.0,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._base = base
        self._state = base.state
        self._planner = planner
        self._turns = turns
        self._hosts = hosts
        self._clock = clock
        self._life = life
        self._first_entry = first_entry
        self._edges = edges
        self._time_for_s = time_for_s
        self._outputs = tuple(first_entry.outputs or ())
        self._replaced: dict[int, str] = {}
        """The incarnation of each host that was told to end last: once is enough."""

    def run(self) -> None:
        """From the first host to the end."""
        self._life.enter()
        error: BaseException | None = None
        try:
            self._commit(self._first_entry)
            self._begin()
            # Collecting garbage among all that was imported would hold a turn up for a tenth of a second.
            gc.freeze()
            self._planner.begin(self._clock.now())
            while not self._is_over():
                self._rest()
                self._turns.make(self._hosts.poll(self._patience_s()))
            self._let_finish()
        except BaseException as raised:
            error = raised
        gc.unfreeze()
        self._turns.close()
        self._life.over(error)

    # -- between turns

    def _rest(self) -> None:
        """Turns take at most a share of a core: what comes meanwhile is taken together."""
        rest_s = rules.rest(self._turns.turn_cpu_s)
        if rest_s > SHORTEST_REST_S:
            self._clock.sleep(rest_s)

    def _patience_s(self) -> float:
        now = self._clock.now()
        next_s = max(self._planner.next_s(self._clock.wall_s(), now), self._turns.paused_until_s)
        return min(max(0.0, next_s - now), rules.IDLE_S)

    def _is_over(self) -> bool:
        if self._life.phase is not Phase.RUNNING:
            return True
        self._check_overdue()
        return self._is_drained()

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
        self._turns.fleet.step()
        while len(self._planner.roster.hosts) < self._turns.fleet.hosts:
            if self._life.phase is not Phase.STARTING:
                return
            now = self._clock.now()
            if first_s is None and self._planner.roster.hosts:
                first_s = now
            if first_s is not None and now - first_s > ALL_HOSTS_S:
                break
            if first_s is None and now - started > HOSTS_S:
                raise RunFailed(self._no_host())
            self._life.stage = f"waiting for hosts: {len(self._planner.roster.hosts)} of {self._turns.fleet.hosts}"
            self._turns.make(self._hosts.poll(0.05))
        self._time_operators()
        for operator in self._graph.reached_by_keys:
            # A run that ended in the middle of a change, or had other limits.
            self._turns.mover.follow(operator, self._clock.now(), self._clock.wall_s())
        origins = self._planner.replays.begin(self._clock.wall_s())
        self._commit(Entry(self._state.entry + 1, self._clock.wall_s(), sources=origins))
        self._life.begun()

    def _no_host(self) -> str:
        words = self._hosts.last_words()
        said = f"; the end of what they wrote:\n{words}" if words else ""
        return f"hosts: none came within {HOSTS_S:.0f} s; look at the cluster's page for free slots{said}"

    def _time_operators(self) -> None:
        """Before the stream flows: a few of its tuples go through the operators. One that hangs does not hold up the run."""
        totals = self._planner.replays.totals()
        if not self._time_for_s or not totals:
            return
        sent = self._planner.time_work(totals, self._time_for_s, self._clock.now())
        if sent is None:
            return
        host, work = sent
        self._life.stage = f"timing the operators for {self._time_for_s:g} s"
        self._hosts.send(host, Works([work]))
        until = self._clock.now() + self._time_for_s + ALL_HOSTS_S
        while work.id in self._planner.under_way and self._life.phase is Phase.STARTING:
            if self._clock.now() > until:
                log.warning("timing the operators takes longer than %g s; the stream begins without", self._time_for_s)
                self._hosts.replace(host)
                return
            self._turns.make(self._hosts.poll(0.05))

    def _let_finish(self) -> None:
        """Works under way may come back for a while; those that do not, did not happen."""
        until = self._clock.now() + STOP_S
        while (left_s := until - self._clock.now()) > 0 and self._planner.under_way:
            self._turns.make(self._hosts.poll(min(left_s, 0.1)))

    def _commit(self, entry: Entry) -> None:
        self._state.apply(entry)
        self._base.write(entry)
