"""Elastic stream processing on Spark: declare a graph of operators, change their replicas while the stream flows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elastream import workload
from elastream.topology import Graph, Topology, groupings

if TYPE_CHECKING:
    from elastream import kafka
    from elastream.control import Guards
    from elastream.engine import TICK_SETTINGS as TICK_SETTINGS
    from elastream.engine import Delivery, Handle, run
    from elastream.engine import session as session
    from elastream.engine.edges import sinks, sources
    from elastream.settings import Settings

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

__version__ = "0.2.0"

_ROOMS = {"sources": "engine.edges.sources", "sinks": "engine.edges.sinks", "kafka": "kafka"}


def __getattr__(name: str) -> Any:
    """Spark is loaded when it is first needed, so that declaring a topology is quick."""
    if name in _ROOMS:
        return import_module(f"elastream.{_ROOMS[name]}")
    if name == "Guards":
        return import_module("elastream.control").Guards
    if name == "Settings":
        return import_module("elastream.settings").Settings
    if name in __all__:
        return getattr(import_module("elastream.engine"), name)
    raise AttributeError(f"module 'elastream' has no attribute {name!r}")
