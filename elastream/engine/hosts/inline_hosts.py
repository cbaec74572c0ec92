"""Hosts in the tick's own thread, in virtual time: works are done when the tick waits, and waiting takes no time."""

from elastream.engine.clock import VirtualClock
from elastream.engine.hosts.link import Event, HostCame, HostSaid
from elastream.engine.messages import Receipt, Routing, ToHost, Work, Works
from elastream.engine.worker.context import WorkerContext, make_context
from elastream.engine.worker.program import Program
from elastream.engine.worker.run_work import run_work
from elastream.lanes.store import Store


class InlineHosts:
    """For tests: nothing happens at the same time, so the same run happens again. Works take no virtual time."""

    def __init__(self, count: int, clock: VirtualClock) -> None:
        self._count = count
        self._clock = clock
        self._contexts: list[WorkerContext] = []
        self._events: list[Event] = []
        self._works: list[tuple[int, Work]] = []
        self._routing = Routing()

    def start(self, program: Program) -> None:
        store = Store(program.base)
        for number in range(self._count):
            incarnation = f"inline{number}"
            context = make_context(program, store, incarnation, cached=True)
            context.wall_s = self._clock.wall_s
            self._contexts.append(context)
            self._events.append(HostCame(number, incarnation, 0, "here", "here"))

    def poll(self, timeout_s: float) -> list[Event]:
        works, self._works = self._works, []
        for number, work in works:
            context = self._contexts[number]
            receipt = self._do(context, work)
            self._events.append(HostSaid(number, f"inline{number}", [receipt], context.writer.ended()))
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

    def replace(self, host: int) -> None:
        """Nothing hangs: works are done one after another."""

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _do(self, context: WorkerContext, work: Work) -> Receipt:
        receipt, written = run_work(context, self._routing, work)
        if written is not None:
            context.writer.release(written)
        return receipt
