"""The grouping `local`: to the replica with the sender's number."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elastream.routing.base import Grouping, Lanes, Sender, SimulatedAs, Snapshot


@dataclass(frozen=True)
class Local(Grouping):
    """The replica with the same number as the sender's, so that neighbours stay together."""

    name = "local"
    simulated_as = SimulatedAs.EVEN

    def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
        here = to.active.index(sender.lane) if sender.lane in to.active else sender.lane % len(to.active)
        return np.full(batch.num_rows, here)
