"""Redirections that are in force: operators whose tuples go where there is room, and keys that are split."""

from elastream.topology import Graph


class Redirections:
    """Written by the redirector, read by routing. In the driver's thread only."""

    def __init__(self, graph: Graph) -> None:
        self.mergeable = frozenset(o.name for o in graph.served if o.keyed is not None and o.keyed.merge is not None)
        """Operators that can merge parts of a state, so that their keys can be split."""
        self.tuples: set[str] = set()
        """Operators whose tuples are redirected now."""
        self.splits: dict[str, dict[int, list[int]]] = {name: {} for name in self.mergeable}
        """Per such operator, keys by their hash, and the groups to which each is dealt out."""
