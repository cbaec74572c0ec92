"""`run`, made of `start`: wait until the stream has ended, or until Ctrl-C."""

import inspect
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from elastream.engine.handle import RunHandle
from elastream.errors import ElastreamError

log = logging.getLogger("elastream.run")

P = ParamSpec("P")
H = TypeVar("H", bound=RunHandle)

_DOC = """Start an application and wait until its stream has ended: every source is exhausted and nothing is queued.

Return the handle of the ended run: `run(app, base).audit()`. An error that ends the run is raised here. Ctrl-C stops the stream
between two ticks and returns, too; the same base continues later.

The parameters are those of `start`, which does not wait:

"""


def blocking(start: Callable[P, H]) -> Callable[P, H]:
    """The function `run` that belongs to this `start`, with the same parameters."""

    def run(*args: P.args, **kwargs: P.kwargs) -> H:
        handle = start(*args, **kwargs)
        try:
            handle.await_end()
        except KeyboardInterrupt:
            log.warning("run: interrupted; the stream stops. Start again with base %s to continue", handle.store)
            try:
                handle.stop()
            except ElastreamError as failure:
                # Ctrl-C reaches Spark's processes, too, which may fail before the stop.
                log.warning("run: failed while it was stopped: %s", failure)
        except BaseException:
            handle.stop()
            raise
        return handle

    run.__doc__ = _DOC + inspect.cleandoc(start.__doc__ or "")
    run.__module__ = start.__module__
    run.__wrapped__ = start  # type: ignore[attr-defined]  # help() then shows the parameters
    return run
