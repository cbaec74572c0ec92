"""Batches, active lanes and senders for tests of routing."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from elastream.routing import Sender

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=40)

ACTIVE = st.lists(st.integers(0, 63), min_size=1, max_size=9, unique=True).map(tuple)
SENDERS = st.builds(Sender, lane=st.integers(0, 63), turn=st.integers(0, 10_000))


def batch_of(**columns: Any) -> pa.RecordBatch:
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def numbered(rows: int) -> pa.RecordBatch:
    return batch_of(id=np.arange(rows), group=np.arange(rows) % 101)
