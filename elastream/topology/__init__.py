"""Declarations of users. Operators, edges and groupings enter; a checked, frozen `Graph` leaves."""

from elastream.topology import groupings
from elastream.topology.graph import Graph
from elastream.topology.groupings import Grouping
from elastream.topology.keyed_stream import KeyedStream
from elastream.topology.operators import Edge, KeyedState, Kind, Operator, OperatorName, Replicas
from elastream.topology.ports import SinkSpec, SourceSpec
from elastream.topology.schemas import DUE, parse_schema, stored
from elastream.topology.stream import Stream
from elastream.topology.topology import App, Topology, graph_of

__all__ = [
    "DUE",
    "App",
    "Edge",
    "Graph",
    "Grouping",
    "KeyedState",
    "KeyedStream",
    "Kind",
    "Operator",
    "OperatorName",
    "Replicas",
    "SinkSpec",
    "SourceSpec",
    "Stream",
    "Topology",
    "graph_of",
    "groupings",
    "parse_schema",
    "stored",
]
