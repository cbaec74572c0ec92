"""A restart as other systems have it: for policies whose system can only change its size that way.

Everything stands still for as long as Storm's `rebalance` takes, and what is queued is lost. Elastream itself does neither.
"""

import time
from collections.abc import Callable

from elastream.control import JournalEntry
from elastream.engine.handle import RunHandle
from elastream.topology import Kind

RESTART_S = 4.6
"""Storm 2.8 took 4.4 and 4.9 s to rebalance the workload of docs/benchmarks.md."""


def restart_as_asked(handle: RunHandle, restart_s: float = RESTART_S) -> Callable[[JournalEntry], None]:
    """For `handle.on_decision`: a decision whose policy asks for a restart loses what waits, and the tick stands still."""
    names = [operator.name for operator in handle.graph.served if operator.kind is not Kind.OUTPUT]

    def decided(entry: JournalEntry) -> None:
        rescales = any(decision.rescales for decision in entry.decisions)
        if entry.proposal is not None and entry.proposal.restart and rescales:
            handle.discard(*names)
            time.sleep(restart_s)

    return decided
