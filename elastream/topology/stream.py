"""`Stream`: a frozen handle to the tuples of one operator, and the methods that declare operators behind it."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from elastream.errors import TopologyError
from elastream.topology import groupings
from elastream.topology.keyed_stream import KeyedStream
from elastream.topology.operators import Kind
from elastream.topology.ports import SinkSpec
from elastream.topology.schemas import SchemaLike
from elastream.topology.spec import After, Function, Groupings, OperatorSpec, ReplicaRange

if TYPE_CHECKING:
    from elastream.topology.topology import Topology

Method = TypeVar("Method", bound=Callable[..., Any])

_OPTIONS = {
    "after": "further predecessors, as Streams or names; on a Topology: all predecessors",
    "schema": "the columns that leave: 'id long, name string', a pyarrow.Schema, a StructType or a dataclass;\n"
    "              default: those that enter",
    "grouping": "how tuples are shared out among replicas, see elastream.groupings; a dict gives one per predecessor",
    "replicas": "how many replicas it may have: (1, 8), or one number",
    "start": "how many replicas it has when the run begins; default: the smallest number",
    "chain": "True: it runs inside the work of its predecessor, without replicas of its own",
    "updates": "True: an aggregation yields a row whenever it changes; default: once, when the watermark makes it final",
    "waits": "True: it mostly waits for other services, so its replicas may be threads of one process",
}


def _with_options(method: Method) -> Method:
    """Add the options that a method takes to its docstring, so that `help()` explains them."""
    lines = [f"    {option:<9} {text}" for option, text in _OPTIONS.items() if option in method.__annotations__]
    method.__doc__ = "\n".join([inspect.cleandoc(method.__doc__ or ""), "", "Options:", *lines])
    return method


class OperatorMethods(ABC):
    """The methods that declare operators, of a `Stream` and of a `Topology`. Each returns the `Stream` of the new operator.

    On a `Stream` the new operator takes the tuples of this stream; `after=` names further ones, so that
    `clicks.map("parse", f, after=views)` takes the tuples of both. On a `Topology`, `after=` names all predecessors.
    """

    @property
    @abstractmethod
    def _app(self) -> "Topology":
        """The topology in which operators are declared."""

    @abstractmethod
    def _before(self, name: str, after: After) -> tuple[str, ...]:
        """The names of all predecessors of operator `name`."""

    @_with_options
    def map(
        self,
        name: str,
        function: Function,
        *,
        after: After = (),
        schema: SchemaLike = None,
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        chain: bool = False,
        waits: bool = False,
    ) -> "Stream":
        """Add `function(row: dict) -> dict`: one tuple in, one tuple out."""
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.MAP, function, before, schema, grouping, replicas, start, chain, waits)
        return self._app._declare(spec)

    @_with_options
    def flat_map(
        self,
        name: str,
        function: Function,
        *,
        after: After = (),
        schema: SchemaLike = None,
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        chain: bool = False,
        waits: bool = False,
    ) -> "Stream":
        """Add `function(row: dict) -> iterable of dict`: one tuple in, any number out."""
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.FLAT_MAP, function, before, schema, grouping, replicas, start, chain, waits)
        return self._app._declare(spec)

    @_with_options
    def filter(
        self,
        name: str,
        function: Function,
        *,
        after: After = (),
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        chain: bool = False,
        waits: bool = False,
    ) -> "Stream":
        """Add `function(row: dict) -> bool`: a true result keeps the tuple."""
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.FILTER, function, before, None, grouping, replicas, start, chain, waits)
        return self._app._declare(spec)

    @_with_options
    def batch(
        self,
        name: str,
        function: Function,
        *,
        after: After = (),
        schema: SchemaLike = None,
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        chain: bool = False,
        waits: bool = False,
    ) -> "Stream":
        """Add `function(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch or Table`."""
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.BATCH, function, before, schema, grouping, replicas, start, chain, waits)
        return self._app._declare(spec)

    @_with_options
    def pandas(
        self,
        name: str,
        function: Function,
        *,
        after: After = (),
        schema: SchemaLike = None,
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        chain: bool = False,
        waits: bool = False,
    ) -> "Stream":
        """Add `function(frame: pandas.DataFrame) -> pandas.DataFrame`."""
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.PANDAS, function, before, schema, grouping, replicas, start, chain, waits)
        return self._app._declare(spec)

    @_with_options
    def dataframe(
        self,
        name: str,
        function: Function,
        *,
        after: After = (),
        schema: SchemaLike = None,
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        updates: bool = False,
    ) -> "Stream":
        """Add `function(frame: DataFrame) -> DataFrame`: anything that Spark can do with a stream, state included.

        The function is called once, when the run starts. The frame has the columns that enter and `_due`, the time at which a
        tuple was due; a result that keeps `_due` keeps its latency.
        """
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.DATAFRAME, function, before, schema, grouping, replicas, start, updates=updates)
        return self._app._declare(spec)

    @_with_options
    def sink(
        self,
        name: str,
        to: Function | SinkSpec,
        *,
        after: After = (),
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        chain: bool = False,
        waits: bool = False,
    ) -> "Stream":
        """Write outside: by `function(batch: pyarrow.RecordBatch, delivery: Delivery)`, or by Spark, see `elastream.sinks`.

        A delivery that is repeated after a crash has the same rows and the same `delivery.id`, so a function that remembers
        ids is exactly-once.
        """
        writer, function = (to, None) if isinstance(to, SinkSpec) else (None, to)
        before = self._before(name, after)
        spec = OperatorSpec(name, Kind.SINK, function, before, None, grouping, replicas, start, chain, waits, writer)
        return self._app._declare(spec)

    @_with_options
    def output(self, name: str, *, after: After = ()) -> "Stream":
        """Keep tuples until they are read from outside, as a table or as a streaming DataFrame."""
        return self._app._declare(OperatorSpec(name, Kind.OUTPUT, None, self._before(name, after)))

    def key_by(self, *columns: str, redirect: bool = False, after: After = ()) -> KeyedStream:
        """Choose the key of the next operator: `clicks.key_by("user").process("visits", f, state="n long")`.

        Tuples with the same values in these columns are served in order by the replica that holds the key's state. With
        `redirect=True`, whole groups of keys move to replicas with more room when the load is uneven.
        """
        for column in columns:
            if not isinstance(column, str):
                raise TopologyError(
                    f"key_by: expected names of columns, got {column!r}; write key_by('user') or key_by('user', 'page')"
                )
        if not columns:
            raise TopologyError("key_by: no column; write key_by('user')")
        return KeyedStream(self._app, columns, lambda name: self._before(name, after), redirect)


@dataclass(frozen=True)
class Stream(OperatorMethods):
    """The tuples that leave one operator. `clicks.map("parse", f)` declares an operator that takes them."""

    topology: "Topology" = field(repr=False)
    name: str
    """The operator's."""

    @property
    def _app(self) -> "Topology":
        return self.topology

    def _before(self, name: str, after: After) -> tuple[str, ...]:
        return (self.name, *self.topology._before(name, after))
