"""The grouping `direct`: a column holds the number of the replica."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elastream.errors import OperatorFailed
from elastream.routing.base import Grouping, Lanes, Sender, SimulatedAs, Snapshot


@dataclass(frozen=True)
class Direct(Grouping):
    """The sender names the replica: the column holds its number, counted among the active ones."""

    columns: tuple[str, ...] = ()
    name = "direct"
    needs_columns = True
    simulated_as = SimulatedAs.POPULARITY

    def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
        numbers = batch.column(self.columns[0])
        if not pa.types.is_integer(numbers.type) or numbers.null_count:
            raise OperatorFailed(
                f"grouping {self}: expected a whole number in every row, got {numbers.type} with "
                f"{numbers.null_count} nulls; fill the column with replica numbers from 0"
            )
        chosen: Lanes = np.asarray(numbers).astype(np.int64) % len(to.active)
        return chosen
