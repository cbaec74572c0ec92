"""What a user declares. Operators, edges and groupings enter; a checked, frozen `Graph` leaves."""

from elastream.topology import groupings
from elastream.topology.graph import Graph
from elastream.topology.groupings import Grouping
from elastream.topology.operators import Edge, KeyedState, Kind, Operator, OperatorName, Replicas
from elastream.topology.schemas import DUE, parse_schema, stored
from elastream.topology.topology import Topology

__all__ = [
    "DUE",
    "Edge",
    "Graph",
    "Grouping",
    "KeyedState",
    "Kind",
    "Operator",
    "OperatorName",
    "Replicas",
    "Topology",
    "groupings",
    "parse_schema",
    "stored",
]
