"""Which lane a tuple goes to. A batch and a snapshot of the lanes enter; lane numbers leave. Pure functions on arrays."""

from elastream.routing.route import Sender, Snapshot, lanes_of, split

__all__ = ["Sender", "Snapshot", "lanes_of", "split"]
