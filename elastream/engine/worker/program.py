"""What every worker knows of a run: the graph with its functions, the settings, where the lanes are.

It travels inside the data source as bytes and is opened once per worker process, not once per task.
"""

import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache

from elastream.engine.worker.pickling import check_pickles
from elastream.lanes import Store
from elastream.settings import Settings
from elastream.topology import Graph, Kind, Operator
from elastream.user_code import importing
from elastream.workload import Arrivals
from elastream.workload.replay import Replay


@dataclass(frozen=True)
class Program:
    """Shipped whole; never stored."""

    graph: Graph
    settings: Settings
    base: str
    base_id: str
    """Names this base among all others, for sinks that remember deliveries."""
    state_columns: dict[str, list[str]] = field(default_factory=dict)
    """Per keyed operator, the columns of its state in the order in which the base has them."""
    appends: bool = False
    """True when segments are files to which can be appended, and every machine sees at once what was appended."""

    def to_bytes(self) -> bytes:
        """With the driver's search path, so that workers on this machine find the modules that the functions are in."""
        from pyspark import cloudpickle

        operators = tuple(_travelling(operator) for operator in self.graph.operators)
        program = replace(self, graph=replace(self.graph, operators=operators))
        try:
            data: bytes = cloudpickle.dumps((sys.path, cloudpickle.dumps(program)))  # type: ignore[no-untyped-call]
        except Exception:
            check_travels(self.graph)
            raise
        return data


def check_travels(graph: Graph) -> None:
    """Raise when a function cannot be sent to hosts, and say which object is to blame."""
    from pyspark import cloudpickle

    for operator in graph.operators:
        check_pickles(_travelling(operator), cloudpickle.dumps)


def _travelling(operator: Operator) -> Operator:
    """What a worker needs of an operator: not how a DataFrame is opened, nor when all the tuples of a workload are due.

    Writers and the functions of dataframe operators do not travel either: Spark knows them, and writers may hold passwords.
    """
    source = operator.source
    made = replace(source, arrivals=Arrivals((0.0,), (0.0,))) if isinstance(source, Replay) else None
    function = None if operator.kind is Kind.DATAFRAME else operator.function
    return replace(operator, function=function, source=made, writer=None)


@lru_cache(maxsize=16)
def load_program(data: bytes) -> tuple[Program, Store]:
    """The same bytes give the same objects for as long as the worker lives."""
    from pyspark import cloudpickle

    search_path, inner = cloudpickle.loads(data)
    sys.path.extend(path for path in search_path if path not in sys.path)
    with importing("a host"):
        program: Program = cloudpickle.loads(inner)
    return program, Store(program.base)
