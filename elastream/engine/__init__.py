"""Elastream on Spark. A graph and a base directory enter; a handle to a stream that flows leaves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastream.engine.edges.spark_handle import Handle
    from elastream.engine.spark.session import TICK_SETTINGS, session
    from elastream.engine.start import run
    from elastream.engine.worker.delivery import Delivery

__all__ = ["TICK_SETTINGS", "Delivery", "Handle", "run", "session"]

_FOUND_IN = {
    "Delivery": "worker.delivery",
    "Handle": "edges.spark_handle",
    "TICK_SETTINGS": "spark.session",
    "run": "start",
    "session": "spark.session",
}


def __getattr__(name: str) -> Any:
    """PySpark is imported when it is first needed: the tick and the worker run without it."""
    if name in _FOUND_IN:
        return getattr(import_module(f"elastream.engine.{_FOUND_IN[name]}"), name)
    raise AttributeError(f"module 'elastream.engine' has no attribute {name!r}")
