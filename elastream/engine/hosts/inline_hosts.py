"""Hosts in the tick's own thread, in virtual time: works are done when the tick waits, and waiting takes no time."""

from elastream.engine.clock import VirtualClock
from elastream.engine.hosts.link import Event, HostCame, HostSaid, HostUses, HostWent
from elastream.engine.messages import Chairs, Receipt, Routing, ToHost, Usage, Work, Works
from elastream.engine.worker.context import WorkerContext, make_context
from elastream.engine.worker.program import Program
from elastream.engine.worker.run_work import run_work
from elastream.lanes.segments import FOLDER as SEGMENTS
from elastream.lanes.store import Store


class InlineHosts:
    """For tests: nothing happens at the same time, so the same run happens again. Works take no virtual time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._program: Program | None = None
        self._contexts: dict[int, WorkerContext] = {}
        self._incarnations: dict[int, str] = {}
        self._came = 0
        self._events: list[Event] = []
        self._works: list[tuple[int, Work]] = []
        self._routing = Routing()

    def start(self, program: Program) -> None:
        self._program = program

    def keep(self, host: int) -> None:
        if host not in self._contexts:
            assert self._program is not None
            store = Store(self._program.base)
            incarnation = self._incarnations[host] = self._new_incarnation(store)
            context = make_context(self._program, store, incarnation, cached=True)
            context.wall_s = self._clock.wall_s
            self._contexts[host] = context
            self._events.append(HostCame(host, incarnation, 0, "here", "here"))

    def end(self, host: int) -> None:
        context = self._contexts.pop(host, None)
        if context is not None:
            context.close()
            # What it was given and has not done goes with it.
            self._works = [(number, work) for number, work in self._works if number != host]
            self._events.append(HostWent(host, self._incarnations[host]))

    def poll(self, timeout_s: float) -> list[Event]:
        works, self._works = self._works, []
        for number, work in works:
            context = self._contexts[number]
            receipt = self._do(context, work)
            self._events.append(HostSaid(number, self._incarnations[number], [receipt], context.writer.ended()))
        if not self._events:
            self._clock.sleep(timeout_s)
        events, self._events = self._events, []
        return events

    def wake(self) -> None:
        """It never waits."""

    def send(self, host: int, message: ToHost) -> None:
        if isinstance(message, Works):
            self._works += [(host, work) for work in message.works]
        elif isinstance(message, Routing):
            self._routing = message
        elif isinstance(message, Chairs):
            usage = Usage(0, 0.0, 0.0, message.seats)
            self._events.append(HostUses(host, self._incarnations[host], usage))

    def replace(self, host: int) -> None:
        """Nothing hangs: works are done one after another."""

    def last_words(self) -> str:
        """They have no standard error of their own."""
        return ""

    def close(self) -> None:
        for context in self._contexts.values():
            context.close()

    def _new_incarnation(self, store: Store) -> str:
        """The next number that no host of an earlier run has had: segments are named by it."""
        taken = {name.partition("-")[0] for name in store.names(SEGMENTS)}
        while True:
            self._came += 1
            if (incarnation := f"inline{self._came}") not in taken:
                return incarnation

    def _do(self, context: WorkerContext, work: Work) -> Receipt:
        receipt, written = run_work(context, self._routing, work)
        if written is not None:
            context.writer.release(written)
        return receipt
