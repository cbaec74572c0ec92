"""Elastream on Spark. A graph and a base directory enter; a handle to a stream that flows leaves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastream.connectors.query.spark_handle import Handle
    from elastream.engine.handle import RunListener
    from elastream.engine.on_spark import run, start
    from elastream.engine.spark.session import TICK_SETTINGS, session
    from elastream.engine.worker.delivery import Delivery

__all__ = ["TICK_SETTINGS", "Delivery", "Handle", "RunListener", "run", "session", "start"]

_FOUND_IN = {
    "Delivery": "elastream.engine.worker.delivery",
    "Handle": "elastream.connectors.query.spark_handle",
    "RunListener": "elastream.engine.handle",
    "TICK_SETTINGS": "elastream.engine.spark.session",
    "run": "elastream.engine.on_spark",
    "session": "elastream.engine.spark.session",
    "start": "elastream.engine.on_spark",
}


def __getattr__(name: str) -> Any:
    """PySpark is imported when it is first needed: the tick and the worker run without it."""
    if name in _FOUND_IN:
        return getattr(import_module(_FOUND_IN[name]), name)
    raise AttributeError(f"module 'elastream.engine' has no attribute {name!r}")
