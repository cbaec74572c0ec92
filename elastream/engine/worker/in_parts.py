"""Retry rows in parts after an unexpected error, until each row that causes one stands alone.

Functions set aside the rows on which they raise. Everything around them may raise, too: a value that Python cannot hold, a
column that cannot be routed. Such rows become dead letters and stop nothing.
"""

from collections.abc import Callable

import pyarrow as pa

from elastream.engine.worker.dead_letters import Failure
from elastream.engine.worker.functions import Made, joined
from elastream.errors import ElastreamError, OperatorFailed
from elastream.user_code import describe


def in_parts(batch: pa.RecordBatch, serve: Callable[[pa.RecordBatch], Made], *, whole: bool = True) -> Made:
    """Serve a batch; if that raises, its halves, one after the other. A row that raises alone is a failure.

    `serve` must change nothing when it raises. Errors that Elastream raises on purpose are not about a row, and pass. But a
    part, which is not the `whole`, may be two rows: that nothing in it is as declared says nothing of the function.
    """
    try:
        return serve(batch)
    except ElastreamError as error:
        if whole or batch.num_rows <= 1 or not isinstance(error, OperatorFailed):
            raise
    except BaseException as error:
        if batch.num_rows <= 1:
            return Made([], [Failure.of(batch, row, describe(error)) for row in range(batch.num_rows)])
    middle = batch.num_rows // 2
    left = in_parts(batch.slice(0, middle), serve, whole=False)
    return joined(left, in_parts(batch.slice(middle), serve, whole=False))
