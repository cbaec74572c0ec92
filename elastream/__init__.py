"""Elastic stream processing on Spark: declare a graph of operators, change their replicas while the stream flows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elastream import workload
from elastream.topology import Graph, Topology, groupings

if TYPE_CHECKING:
    from elastream.control import Guards
    from elastream.engine import TICK_SETTINGS as TICK_SETTINGS
    from elastream.engine import Delivery, Handle, Settings, run, sinks, sources
    from elastream.engine import kafka_once as kafka
    from elastream.engine import tick_session as session

__all__ = [
    "TICK_SETTINGS",
    "Delivery",
    "Graph",
    "Guards",
    "Handle",
    "Settings",
    "Topology",
    "groupings",
    "kafka",
    "run",
    "session",
    "sinks",
    "sources",
    "workload",
]

__version__ = "0.1.0"

_FROM_ENGINE = {"session": "tick_session"}
_ROOMS = {"sources": "sources", "sinks": "sinks", "kafka": "kafka_once"}


def __getattr__(name: str) -> Any:
    """Spark is loaded when it is first needed, so that declaring a topology is quick."""
    if name in _ROOMS:
        return import_module(f"elastream.engine.{_ROOMS[name]}")
    if name == "Guards":
        return import_module("elastream.control").Guards
    if name in __all__:
        return getattr(import_module("elastream.engine"), _FROM_ENGINE.get(name, name))
    raise AttributeError(f"module 'elastream' has no attribute {name!r}")
