"""`KeyedStream`: a stream whose tuples are served by key, and the operators with state per key behind it."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from elastream.errors import TopologyError
from elastream.topology import groupings
from elastream.topology.operators import IDLE_S, KeyedState, Kind
from elastream.topology.schemas import SchemaLike, parse_schema
from elastream.topology.spec import Function, OperatorSpec, ReplicaRange
from elastream.topology.windows import windows_of

if TYPE_CHECKING:
    from elastream.topology.stream import Stream
    from elastream.topology.topology import Topology

Mode = Literal["rows", "arrow", "pandas"]

_KINDS = {"rows": Kind.KEYED, "arrow": Kind.KEYED_BATCH, "pandas": Kind.KEYED_PANDAS}


@dataclass(frozen=True)
class KeyedStream:
    """A stream with a key, made by `Stream.key_by`."""

    topology: "Topology"
    key: tuple[str, ...]
    before: Callable[[str], tuple[str, ...]]
    """The predecessors of an operator of this name."""

    redirect: bool = False

    def process(
        self,
        name: str,
        function: Function,
        *,
        state: SchemaLike,
        initial: dict[str, Any] | None = None,
        mode: Mode = "rows",
        schema: SchemaLike = None,
        on_timer: Function | None = None,
        event_time: str | None = None,
        lateness_s: float = 0.0,
        drop_late: bool = False,
        idle_s: float = IDLE_S,
        ttl_s: float | None = None,
        merge: Function | None = None,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        waits: bool = False,
    ) -> "Stream":
        """Add a function of a key's tuples and its state; the state is committed together with the tuples that changed it.

        mode="rows"    `function(key, rows: list of dict, state) -> iterable of dict`: some tuples of one key, in order. `state`
                       has an attribute per column; `state.remove()` forgets the key. With several key columns the key is a tuple.
        mode="arrow"   `function(batch, state) -> (batch, state)`, all `pyarrow.RecordBatch`: tuples of many keys, and a row of
                       state for each key. Returned rows of state are kept; one that is all null is forgotten, and a key that
                       is not returned stays as it was.
        mode="pandas"  the same with `pandas.DataFrame`

        Options:
            state      the columns of the state: "n long, last timestamp", or a dataclass whose defaults are the initial values
            initial    the values of a new key's state, where `state` is no dataclass; others are None
            schema     the columns that leave; default: those that enter
            on_timer   `on_timer(key, time_s, state) -> iterable of dict`, called when a time comes that
                       `state.wake_at(time)` asked for, or when the watermark passes that of `state.wake_at_event(time)`
            event_time the timestamp column that the watermark follows
            lateness_s by how many seconds the watermark stays behind the newest tuple
            drop_late  True: a tuple older than the watermark is dropped, and counted as late
            idle_s     an input that is silent for this many seconds does not hold the watermark back
            ttl_s      forget a key that has not changed for this many seconds
            merge      `merge(key, part, state) -> iterable of dict` adds a part of a key's state to the state. With
                       key_by(..., redirect=True) a key that is too much for one replica is then split: other replicas serve
                       some of its tuples from the initial state, and only the rows of `merge` leave. The order of such a
                       key's tuples is not kept. In the other modes: `merge(parts, state) -> (batch, state)`
            replicas   how many replicas it may have: (1, 8), or one number
            start      how many replicas it has when the run begins; default: the smallest number
            waits      True: it mostly waits for other services, so its replicas may be threads of one process
        """
        if mode not in _KINDS:
            raise TopologyError(f"process {name!r}: mode must be 'rows', 'arrow' or 'pandas', got {mode!r}")
        keyed = KeyedState(
            self.key,
            parse_schema(state),
            _initial(name, state, initial),
            ttl_s,
            on_timer,
            event_time,
            lateness_s,
            drop_late,
            idle_s,
            merge,
        )
        by_key = groupings.redirection(*self.key) if self.redirect else groupings.fields(*self.key)
        kind, before = _KINDS[mode], self.before(name)
        spec = OperatorSpec(name, kind, function, before, schema, by_key, replicas, start, waits=waits, keyed=keyed)
        return self.topology._declare(spec)

    def window(
        self,
        name: str,
        *,
        time: str,
        aggregate: dict[str, str],
        every_s: float | None = None,
        length_s: float | None = None,
        session_s: float | None = None,
        lateness_s: float = 0.0,
        idle_s: float = IDLE_S,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        waits: bool = False,
    ) -> "Stream":
        """Add a row per key and window of event time, when the watermark has passed the window's end.

        The columns that leave are the key, `window_start`, `window_end` and those of `aggregate`. A tuple that is older than the
        watermark is dropped, and counted as late.

        Options:
            time       the timestamp column that says when a tuple happened
            aggregate  result column -> function: {"n": "count()", "most": "max(bytes)"}; count, sum, min, max and mean
            every_s    seconds from the beginning of a window to that of the next
            length_s   windows of this length, which overlap; default: `every_s`
            session_s  instead of `every_s`: a window ends when its key was silent for this time, in seconds
            lateness_s by how many seconds the watermark stays behind the slowest input, partition and replica
            idle_s     an input that is silent for this many seconds does not hold the watermark back; math.inf: it always does
            replicas   how many replicas it may have: (1, 8), or one number
            start      how many replicas it has when the run begins; default: the smallest number
            waits      True: replicas may be threads of one process
        """
        entering = self.topology._entering(name, self.before(name))
        for column in (*self.key, time):
            if column not in entering.names:
                raise TopologyError(
                    f"window {name!r}: no column {column!r} enters; there are {', '.join(entering.names)}"
                )
        windows = windows_of(
            name,
            self.key,
            time,
            entering,
            every_s=every_s,
            length_s=length_s,
            session_s=session_s,
            aggregate=aggregate,
        )
        return self.process(
            name,
            windows.add,
            state=windows.state,
            schema=windows.schema(entering),
            on_timer=windows.close,
            event_time=time,
            lateness_s=lateness_s,
            drop_late=True,
            idle_s=idle_s,
            replicas=replicas,
            start=start,
            waits=waits,
        )


def _initial(name: str, state: SchemaLike, initial: dict[str, Any] | None) -> dict[str, Any]:
    """The state of a new key: as given, or the defaults of a dataclass."""
    if not (isinstance(state, type) and is_dataclass(state)):
        return dict(initial or {})
    if initial is not None:
        raise TopologyError(
            f"process {name!r}: state {state.__name__} has initial values of its own; remove initial= and give its fields defaults"
        )
    values: dict[str, Any] = {}
    for column in fields(state):
        if column.default is not MISSING:
            values[column.name] = column.default
        elif column.default_factory is not MISSING:
            values[column.name] = column.default_factory()
    return values
