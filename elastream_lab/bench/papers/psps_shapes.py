"""The shape of the PSPS paper's complex application (figure 12), for the simulator: the flow splits twice, and joins again.

Whether a tuple is spam or news decides where it goes. An operator of the engine sends its tuples over all of its edges, and the
application `tweets-complex` filters behind them; a simulated one knows what share goes over each edge.
"""

import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import Topology
from elastream.workload import Arrivals, constant
from elastream_lab.apps.common.service import service


def complex_tweets(
    arrivals: Arrivals | None = None, *, grouping: str = "load_balancing", replicas: int = 12
) -> Topology:
    """Spam goes to its user, who is notified; of the rest, news has a topic, and an opinion a mood before its topic."""
    how = service(grouping, replicas, 0.0).how
    app = Topology("complex-tweets")
    app.source("tweets", sources.replay(arrivals or constant(100.0, 60.0)))
    for name, after in (
        ("parse", ["tweets"]),
        ("spam", ["parse"]),
        ("user", ["spam"]),
        ("notify", ["user"]),
        ("news", ["spam"]),
        ("sentiment", ["news"]),
        ("topic", ["news", "sentiment"]),
    ):
        app.batch(name, _same, after=after, **how)
    app.sink("store", lambda batch: None, after=["notify", "topic"], **how)
    return app


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch
