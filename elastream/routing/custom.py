"""The grouping `custom`: a user's function and a batch enter, checked replica numbers leave."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.errors import OperatorFailed


def chosen_replicas(
    function: Callable[..., Any], batch: pa.RecordBatch, replicas: int, grouping: str
) -> npt.NDArray[np.int64]:
    """One replica from 0 to `replicas` - 1 for each row. `grouping` is how errors call it."""
    try:
        answer = function(batch, replicas)
        chosen = np.asarray(answer)
    except Exception as error:
        raise OperatorFailed(f"grouping {grouping}: raised {type(error).__name__}: {error}") from error
    wanted = f"grouping {grouping}: expected a replica number for each of {batch.num_rows} rows"
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        form = f" of {chosen.ndim} dimensions" if chosen.ndim != 1 else ""
        raise OperatorFailed(
            f"{wanted}, got {type(answer).__name__} with {chosen.dtype}{form}; return an array of integers"
        )
    if len(chosen) != batch.num_rows:
        raise OperatorFailed(f"{wanted}, got {len(chosen)}; return one number per row")
    wrong = np.flatnonzero((chosen < 0) | (chosen >= replicas))
    if len(wrong):
        raise OperatorFailed(
            f"{wanted}, from 0 to {replicas - 1}, got {int(chosen[wrong[0]])} for row {int(wrong[0])}; take it % replicas"
        )
    return chosen.astype(np.int64)
