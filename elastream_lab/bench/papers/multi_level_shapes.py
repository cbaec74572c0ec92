"""The shape of the multi-level paper's analysis of atoms: a spout whose instances are counted, and two analyses behind it."""

from elastream.connectors import sources
from elastream.topology import Topology
from elastream.workload import Arrivals, constant

POOL = 64
"""More than the paper has of any."""


def comd(arrivals: Arrivals | None = None) -> Topology:
    """A tuple is an iteration. The application itself, with real analyses, is `comd`; this one counts instances."""
    app = Topology("comd-shape")
    app.source("iterations", sources.replay(arrivals or constant(10.0, 60.0)))
    app.batch("spout", lambda batch: batch, after="iterations", replicas=(1, POOL))
    app.sink("histogram", lambda batch: None, after="spout", replicas=(1, POOL))
    app.sink("distance", lambda batch: None, after="spout", replicas=(1, POOL))
    return app
