"""Dataframe operators: their lanes enter as streaming DataFrames, the user's functions run, receipts leave.

Each is a branch of the edge query: work -> rows of the lanes -> function -> rows to lanes -> receipts.
"""

import math
from collections import Counter
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from elastream.connectors.dataframes.ends import reader, router
from elastream.connectors.query.lane_reader import ByTask, TaskReceipts
from elastream.connectors.query.lane_source import lane_source
from elastream.connectors.query.sink_jobs import LEAST_SHARE
from elastream.connectors.query.source_branch import RECEIPT_SCHEMA, due_time
from elastream.connectors.query.task import EDGE_WORK
from elastream.connectors.spark_source import SparkSource
from elastream.engine import messages
from elastream.engine.messages import LatencyCounts, Receipt
from elastream.engine.spark.java_errors import java_reason
from elastream.engine.worker.program import Program
from elastream.errors import RunFailed, SettingError, TopologyError
from elastream.lanes import Store
from elastream.lanes.sealed import seal, unseal
from elastream.topology import DUE, Graph, Kind, Operator, stored

BRANCHES = "branches.json"

MOST_UNREAD = 8
"""After so many batches in which Spark did not read what was planned, its function will never read it."""


class DataframeOperators:
    """All of one run. The functions are called when it is made."""

    def __init__(self, spark: SparkSession, program: Program, folder: str, source: str) -> None:
        operators = [operator for operator in program.graph.operators if operator.kind is Kind.DATAFRAME]
        travelling = program.to_bytes() if operators else b""
        if operators:
            spark.dataSource.register(lane_source(source, folder))
        self._branches = {
            operator.name: _OperatorBranch(spark, program.graph, operator, travelling, source) for operator in operators
        }
        self.stateful = frozenset(name for name, branch in self._branches.items() if branch.stateful)
        """Those that keep state in Spark's checkpoint."""
        self.output_mode = _output_mode(program.graph, self.stateful)
        for branch in self._branches.values():
            branch.check(spark, self.output_mode)

    def __bool__(self) -> bool:
        return bool(self._branches)

    @property
    def names(self) -> list[str]:
        return list(self._branches)

    @property
    def branches(self) -> list[DataFrame]:
        return [branch.receipts_of for branch in self._branches.values()]

    def forget(self) -> None:
        """A batch begins: what an attempt before it reported does not count."""
        for branch in self._branches.values():
            branch.said.value = {}

    def receipts(self, planned: dict[str, int], routed: list[Receipt]) -> tuple[list[Receipt], bool]:
        """A batch is over: a receipt per operator, those of sources as they are, and whether the offer was read.

        `planned` is how many tasks should have read, per operator.
        """
        receipts = [receipt for receipt in routed if receipt.problem or receipt.head not in self._branches]
        was_read = False
        for name, branch in self._branches.items():
            reads = branch.take(planned.get(name, 0))
            made = [receipt for receipt in routed if receipt.head == name and not receipt.problem]
            was_read = was_read or bool(reads)
            if reads or made:
                receipts.append(_combined([*reads, *made]))
        return receipts, was_read


def _combined(receipts: list[Receipt]) -> Receipt:
    """What was read of an operator's lanes and what came of it, as one."""
    problem = next((receipt.problem for receipt in receipts if receipt.problem), None)
    buckets: Counter[int] = Counter()
    found = [receipt.latencies for receipt in receipts if receipt.latencies]
    for latencies in found:
        buckets.update(latencies.buckets)
    return Receipt(
        EDGE_WORK,
        [lane for receipt in receipts for lane in receipt.operators],
        appended=[piece for receipt in receipts for piece in receipt.appended],
        latencies=LatencyCounts(dict(buckets), sum(one.sum_s for one in found), max(one.max_s for one in found))
        if found
        else None,
        problem=problem,
    )


class _OperatorBranch:
    def __init__(self, spark: SparkSession, graph: Graph, operator: Operator, program: bytes, source: str) -> None:
        self._name = operator.name
        self.said = spark.sparkContext.accumulator({}, ByTask())
        columns = stored(graph.input_schema(operator.name))
        work = spark.readStream.format(source).option("operator", operator.name).load()
        rows = work.mapInArrow(reader(program, columns, self.said), from_arrow_schema(columns))
        made = _result(operator, rows)
        self.stateful = bool(made._jdf.queryExecution().analyzed().containsStatefulOperator())
        wanted = stored(operator.schema)
        self.receipts_of = made.mapInArrow(router(operator.name, program, wanted, self.said), RECEIPT_SCHEMA)
        self._quickest_s = math.inf
        self._unread = 0

    def check(self, spark: SparkSession, mode: str) -> None:
        """Spark would say the same when the query starts, but not of which operator."""
        jvm: Any = spark._jvm
        modes = {
            "append": jvm.org.apache.spark.sql.streaming.OutputMode.Append,
            "update": jvm.org.apache.spark.sql.streaming.OutputMode.Update,
        }
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        plan: Any = self.receipts_of._jdf.queryExecution().analyzed()
        try:
            checker.checkForStreaming(plan, modes[mode]())
        except AnalysisException as error:
            raise TopologyError(f"dataframe {self._name!r}: Spark refuses it: {java_reason(error)}") from None

    def take(self, planned: int) -> list[Receipt]:
        said: TaskReceipts
        said, self.said.value = dict(self.said.value), {}
        read = [told for name, told in said.items() if name.startswith("read")]
        self._unread = self._unread + 1 if planned > len(read) else 0
        if self._unread > MOST_UNREAD or 0 < len(read) < planned:
            raise RunFailed(
                f"operator {self._name!r}: Spark read {len(read)} of {planned} parts of what waits for it; a function that "
                "does not read all it is given, such as one with limit(), cannot be run"
            )
        if not read:
            return []
        began_s = min(began_s for _, began_s in read)
        ended_s = max((ended_s for name, (_, ended_s) in said.items() if name.startswith("routed")), default=began_s)
        return self._timed([messages.decode_receipt(data) for data, _ in read], max(0.0, ended_s - began_s))

    def _timed(self, receipts: list[Receipt], took_s: float) -> list[Receipt]:
        """Only the branch as a whole can be timed. Of that, what it takes beyond the quickest one is counted for the rows.

        Replicas are served side by side: the time is that of the one with most rows, the others have their share of it.
        """
        self._quickest_s = min(self._quickest_s, took_s)
        busy_s = max(took_s - self._quickest_s, took_s * LEAST_SHARE)
        rows = Counter({lane.lane: lane.processed for receipt in receipts for lane in receipt.operators})
        most = max(rows.values(), default=0)
        for receipt in receipts:
            for lane in receipt.operators:
                lane.busy_s = busy_s * rows[lane.lane] / most if most else 0.0
        return receipts


def keep_branches(store: Store, graph: Graph) -> None:
    """Spark knows state and offsets by their places in the query: a base with a checkpoint keeps its branches for ever."""
    kept = [s.name for s in graph.sources if isinstance(s.source, SparkSource)]
    kept += [operator.name for operator in graph.operators if operator.kind is Kind.DATAFRAME]
    if not store.exists(BRANCHES):
        store.write(BRANCHES, seal("branches", {"branches": kept}))
        return
    before = unseal("branches", store.read(BRANCHES), f"{store}/{BRANCHES}")["branches"]
    if before != kept:
        raise SettingError(
            f"base {store}: its checkpoint belongs to streaming sources and dataframe operators {before}, this topology has "
            f"{kept}; put them back in that order, or begin with a new base"
        )


def _result(operator: Operator, rows: DataFrame) -> DataFrame:
    """What the function makes of its lanes, in the declared columns, with a due time where it kept one."""
    assert operator.function is not None
    try:
        made = operator.function(rows)
    except AnalysisException as error:
        raise TopologyError(f"dataframe {operator.name!r}: Spark refuses it: {java_reason(error)}") from None
    if isinstance(made, DataFrame) and "GlobalLimit" in str(made._jdf.queryExecution().analyzed()):
        raise TopologyError(f"dataframe {operator.name!r}: limit() would leave tuples unread; filter them instead")
    if not isinstance(made, DataFrame) or not made.isStreaming:
        what = "a DataFrame that does not come from the one it got" if isinstance(made, DataFrame) else repr(made)
        raise TopologyError(
            f"dataframe {operator.name!r}: expected function(DataFrame) -> DataFrame, got {what}; "
            "return what you made of the DataFrame that entered"
        )
    wanted = from_arrow_schema(operator.schema)
    if _columns(made.schema) != _columns(wanted):
        raise TopologyError(
            f"dataframe {operator.name!r}: declared {_listed(wanted)}; its function gives {_listed(made.schema)}; select or cast "
            "these columns, or change schema"
        )
    return made.select(
        *(F.col(f"`{name}`") for name in operator.schema.names), due_time(DUE if DUE in made.columns else None)
    )


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema if field.name != DUE}


def _listed(schema: StructType) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in _columns(schema).items())


def _output_mode(graph: Graph, stateful: frozenset[str]) -> str:
    """One query has one mode, and Spark allows several operators with state in append mode only."""
    updating = [name for name in sorted(stateful) if graph[name].updates]
    if updating and len(stateful) > 1:
        raise TopologyError(
            f"dataframe {updating[0]!r}: updates=True, but {', '.join(map(repr, sorted(stateful - {updating[0]})))} keep state "
            "too, and Spark has several operators with state in one query in append mode only; give it a watermark and remove "
            "updates, or run it as a topology of its own"
        )
    return "update" if updating else "append"
