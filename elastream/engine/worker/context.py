"""What a process needs to do works: the program, the schemas of its lanes, and its segment files."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from elastream.engine.event_times import event_time_origins, tracked_operators
from elastream.engine.worker.dead_letters import DEAD_LETTER_SCHEMA, DEAD_LETTERS, Failure
from elastream.engine.worker.functions import Made, apply
from elastream.engine.worker.in_parts import in_parts
from elastream.engine.worker.keyed import apply_keyed
from elastream.engine.worker.program import Program
from elastream.engine.worker.split_keys import parts_schema
from elastream.errors import BaseUnusable, OperatorFailed
from elastream.lanes.segment_files import BatchCache, SegmentReader, SegmentWriter
from elastream.lanes.segments import PARTS, STATE, SchemaId, Slice, decode_schema, encode_schema, schema_id
from elastream.lanes.store import Store
from elastream.state.changelog import SCHEMA as CHANGES
from elastream.state.host_state import HostState, StateChanges
from elastream.state.records import RecordCodec
from elastream.topology import Edge, Graph, Kind, Operator, stored


@dataclass(frozen=True)
class Chain:
    """An operator and what is chained to it: they run in one work."""

    members: tuple[Operator, ...]
    edges: tuple[Edge, ...]
    """Over which the tuples that leave it go to lanes."""

    @property
    def ends(self) -> bool:
        """True when it ends in a sink."""
        return self.members[-1].kind is Kind.SINK


@dataclass
class WorkerContext:
    """Of one process. Several threads do works with it at the same time."""

    program: Program
    store: Store
    writer: SegmentWriter
    reader: SegmentReader
    schemas: dict[SchemaId, pa.Schema] = field(default_factory=dict)
    """Those that slices may name."""
    lane_schemas: dict[str, SchemaId] = field(default_factory=dict)
    """Per operator with lanes, the columns of what waits in them."""
    chains: dict[str, Chain] = field(default_factory=dict)
    event_times: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Per operator at which event times begin, their columns."""
    tracked: frozenset[str] = frozenset()
    """Operators whose lanes tell from which origin rows come."""
    kept: frozenset[str] = frozenset()
    """Operators whose lanes are read from outside."""

    wall_s: Callable[[], float] = time.time
    """Seconds since 1970, by which latencies are reckoned."""
    now: Callable[[], float] = time.perf_counter
    """Seconds that only grow, by which works are timed."""
    cpu_s: Callable[[], float] = time.thread_time
    """CPU time of the thread that does a work."""
    proven: set[str] = field(default_factory=set)
    """Operators that have given what they declared, here."""
    state: HostState | None = None
    """What keyed operators remember, where there are any and this is a host."""

    def run_operator(self, operator: Operator, batch: pa.RecordBatch, changes: StateChanges | None) -> Made:
        """Any operator but a sink; `changes` of a keyed one."""
        if changes is None:
            return in_parts(batch, lambda part: apply(operator, part))
        return in_parts(batch, lambda part: apply_keyed(operator, part, changes))

    def changes_of(self, operator: Operator, now_s: float) -> StateChanges | None:
        """What a work will change in the states of an operator; None for one that remembers nothing."""
        if operator.keyed is None:
            return None
        assert self.state is not None, "states are in hosts"
        return StateChanges(self.state, operator.name, now_s)

    def read(self, piece: Slice) -> pa.RecordBatch:
        return self.reader.read(piece, self.schemas[piece.schema])

    @property
    def graph(self) -> Graph:
        return self.program.graph

    def unwritable(self, error: OSError) -> BaseUnusable:
        return BaseUnusable(
            f"base {self.store}: a segment could not be written: {error}; make room or mend the permissions, then start again with "
            "the same base"
        )

    def close(self) -> None:
        self.writer.close()
        self.reader.close()
        if self.state is not None:
            self.state.close()

    def learn(self, schemas: dict[SchemaId, str]) -> None:
        """Schemas that the ledger has: tuples of an earlier topology may wait."""
        for key, text in schemas.items():
            if key not in self.schemas:
                self.schemas[key] = decode_schema(text)

    def judge(self, operator: str, rows: int, failures: Sequence[Failure]) -> None:
        """Raise when an operator that has never kept to its declaration does not now: that is no tuple's fault."""
        if rows:
            self.proven.add(operator)
        elif operator not in self.proven:
            wrong = next((failure for failure in failures if failure.undeclared), None)
            if wrong is not None:
                raise OperatorFailed(wrong.error)


def make_context(
    program: Program, store: Store, prefix: str, *, cached: bool, now: Callable[[], float] = time.perf_counter
) -> WorkerContext:
    """`prefix` is how the names of its segments begin; `cached`: lanes that it writes may be read in this process."""
    cache = BatchCache() if cached else None
    graph = program.graph
    lane_schemas, schemas = schemas_of(graph)
    heads = [operator for operator in graph.operators if not operator.chained and operator.kind is not Kind.OUTPUT]
    outputs = [operator.name for operator in graph.operators if operator.kind is Kind.OUTPUT]
    remembers = cached and any(operator.keyed for operator in graph.operators)
    most_bytes = program.settings.state.bytes_per_host
    return WorkerContext(
        program,
        store,
        SegmentWriter(store, prefix, appends=program.appends, cache=cache, clock=now),
        SegmentReader(store, cache),
        schemas,
        lane_schemas,
        {head.name: Chain(graph.chain(head.name), graph.edges_leaving(head.name)) for head in heads},
        event_time_origins(graph),
        tracked_operators(graph),
        frozenset((*outputs, DEAD_LETTERS)),
        now=now,
        state=HostState(codecs_of(program), most_bytes=most_bytes) if remembers else None,
    )


def codecs_of(program: Program) -> dict[str, RecordCodec]:
    """Per keyed operator, how its keys and records are stored."""
    found: dict[str, RecordCodec] = {}
    for operator in program.graph.operators:
        if operator.keyed is not None:
            enters = program.graph.input_schema(operator.name)
            key_schema = pa.schema([enters.field(name) for name in operator.keyed.key])
            columns = program.state_columns.get(operator.name, ())
            found[operator.name] = RecordCodec(operator.keyed, key_schema, columns)
    return found


def schemas_of(graph: Graph) -> tuple[dict[str, SchemaId], dict[SchemaId, pa.Schema]]:
    """Per operator with lanes the id of its schema, and the schemas: driver and hosts know them from the graph alone."""
    found: dict[str, pa.Schema] = {
        operator.name: stored(graph.input_schema(operator.name)) for operator in graph.served
    }
    found[DEAD_LETTERS] = stored(DEAD_LETTER_SCHEMA)
    found |= {operator.name + STATE: CHANGES for operator in graph.operators if operator.keyed is not None}
    for operator in graph.operators:
        if operator.keyed is not None and operator.keyed.merge is not None:
            found[operator.name + PARTS] = parts_schema(operator.keyed, graph.input_schema(operator.name))
    ids: dict[str, SchemaId] = {name: schema_id(schema) for name, schema in found.items()}
    return ids, {ids[name]: schema for name, schema in found.items()}


def encoded_schemas(graph: Graph) -> dict[SchemaId, str]:
    return {key: encode_schema(schema) for key, schema in schemas_of(graph)[1].items()}
