"""Elastic stream processing on Spark: declare a graph of operators, change their replicas while the stream flows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elastream import workload
from elastream.topology import Graph, Stream, Topology, groupings

if TYPE_CHECKING:
    from elastream import kafka
    from elastream.connectors import sinks, sources
    from elastream.control import (
        Guards,
        Home,
        LevelWant,
        Observation,
        OperatorObservation,
        Policy,
        Proposal,
        Want,
    )
    from elastream.engine import TICK_SETTINGS as TICK_SETTINGS
    from elastream.engine import Delivery, Handle, RunListener, run, start
    from elastream.engine import session as session
    from elastream.settings import ErrorSettings, QueueSettings, Settings, StateSettings, WorkSettings
    from elastream.simulator.application import simulate

__all__ = [
    "TICK_SETTINGS",
    "Delivery",
    "ErrorSettings",
    "Graph",
    "Guards",
    "Handle",
    "Home",
    "LevelWant",
    "Observation",
    "OperatorObservation",
    "Policy",
    "Proposal",
    "QueueSettings",
    "RunListener",
    "Settings",
    "StateSettings",
    "Stream",
    "Topology",
    "Want",
    "WorkSettings",
    "groupings",
    "kafka",
    "run",
    "session",
    "simulate",
    "sinks",
    "sources",
    "start",
    "workload",
]

__version__ = "0.3.0.dev0"

_PLACES = {
    **dict.fromkeys(
        ("Guards", "Home", "LevelWant", "Observation", "OperatorObservation", "Policy", "Proposal", "Want"), "control"
    ),
    **dict.fromkeys(("TICK_SETTINGS", "Delivery", "Handle", "RunListener", "run", "session", "start"), "engine"),
    **dict.fromkeys(("ErrorSettings", "QueueSettings", "Settings", "StateSettings", "WorkSettings"), "settings"),
    "simulate": "simulator.application",
}
"""Name -> the module that has it."""

_MODULES = {"sources": "connectors.sources", "sinks": "connectors.sinks", "kafka": "kafka"}


def __getattr__(name: str) -> Any:
    """Spark is loaded when it is first needed, so that declaring a topology is quick."""
    if name in _MODULES:
        return import_module(f"elastream.{_MODULES[name]}")
    if name in _PLACES:
        return getattr(import_module(f"elastream.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'elastream' has no attribute {name!r}")
