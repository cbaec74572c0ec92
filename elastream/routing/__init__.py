"""Which lane a tuple goes to. A batch and a snapshot of the lanes enter; lane numbers leave. Pure functions on arrays."""

from elastream.routing.key_groups import Owners
from elastream.routing.route import Part, Sender, Snapshot, lanes_of, split

__all__ = ["Owners", "Part", "Sender", "Snapshot", "lanes_of", "split"]
