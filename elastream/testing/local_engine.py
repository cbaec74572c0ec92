"""The engine without Spark: the same tick and the same works, in processes, in threads, or in virtual time."""

import tempfile
from dataclasses import dataclass
from typing import Any

from elastream.engine.assemble import Plan, assemble
from elastream.engine.blocking import blocking
from elastream.engine.clock import VirtualClock
from elastream.engine.fresh import begin_anew
from elastream.engine.handle import RunHandle
from elastream.engine.hosts.inline_hosts import InlineHosts
from elastream.engine.hosts.local_hosts import LocalHosts
from elastream.fleet.machines import FixedMachines, Machines
from elastream.lanes.store import Store
from elastream.topology import App, graph_of
from elastream.user_code import refuse_run


@dataclass(frozen=True)
class LocalEngine:
    """For graphs of which Spark serves no part.

    With `processes`, hosts can be killed. With `virtual`, time passes only while the stream waits for its next tuple, and the
    same run happens again: an hour of a replay takes as long as its operators compute.
    """

    hosts: int = 2
    processes: bool = False
    virtual: bool = False
    machines: Machines | None = None
    """Those on which hosts are; None: one with room for `hosts`."""

    def start(self, app: App, base: str | None = None, *, fresh: bool = False, **how: Any) -> RunHandle:
        """Start an application and return its handle. Further parameters, from `settings` on, are those of `elastream.start`."""
        refuse_run()
        graph = graph_of(app)
        store = Store(base or tempfile.mkdtemp(prefix="elastream-"))
        if fresh:
            begin_anew(store)
        clock = VirtualClock() if self.virtual else None
        hosts = InlineHosts(clock) if clock else LocalHosts(processes=self.processes)
        return assemble(
            graph,
            store,
            Plan(**how),
            hosts,
            hosts.start,
            RunHandle,
            machines=self.machines or FixedMachines(lambda: self.hosts),
            slots=lambda: self.hosts,
            clock=clock,
            inline=self.virtual,
        )

    run = blocking(start)
