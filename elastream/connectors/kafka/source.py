"""A Kafka topic as a source: Spark's connector reads it as one more branch of the query, bounded in every tick."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from elastream.connectors.kafka.admin import check_servers, kafka_admin
from elastream.connectors.spark_source import DAMAGED, NAME, PART, Progress, SparkSource, State
from elastream.engine.spark.jars import KAFKA
from elastream.engine.spark.redaction import redacted
from elastream.errors import SettingError, TopologyError
from elastream.kafka import NAME_SQL, TIME_SQL
from elastream.topology import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Values = Literal["json", "string", "binary"]
Offsets = Mapping[int, int]

HEADERS = "array<struct<key:string,value:binary>>"
RECORD = {"topic": "string", "partition": "int", "offset": "long", "timestamp": "timestamp", "headers": HEADERS}
"""What a record has besides its key and value."""

TIME = "_time"
"""The record's timestamp, from which latency is measured, whether it is kept or not."""


@dataclass(frozen=True)
class Kafka(SparkSource):
    """One topic. Its offsets are in Spark's checkpoint; where it ends, if it does, is in the ledger."""

    servers: str
    topic: str
    value: Values
    fields: pa.Schema
    """What is in the value, when that is JSON."""
    keep: tuple[str, ...]
    start: str | datetime | Offsets
    end: str | Offsets | None
    once: bool
    most_per_tick: int
    options: Mapping[str, str] = field(repr=False)
    """They may hold passwords."""

    def begin(self, spark: SparkSession, source: str, known: State) -> State:
        """Where it ends is settled when a base is begun: a restart does not move it."""
        where = f"source {source!r}"
        with kafka_admin(spark, self.servers, self.options) as admin:
            partitions = admin.partitions(self.topic, where)
            for name, offsets in (("start", self.start), ("end", self.end)):
                wrong = sorted(set(offsets) - set(range(partitions))) if isinstance(offsets, Mapping) else []
                if wrong:
                    raise SettingError(
                        f"{where}: {name} names partition {wrong[0]}, but {self.topic!r} has 0..{partitions - 1}"
                    )
            state = {**known, "partitions": partitions}
            if self.end is not None and "end" not in known:
                state["end"] = admin.newest(self.topic, partitions, where)
                if isinstance(self.end, Mapping):
                    state["end"] |= {str(partition): offset for partition, offset in self.end.items()}
        return state

    def frame(self, spark: SparkSession, state: State) -> DataFrame:
        from elastream.engine.spark.executors import capacity_of

        frame = spark.readStream.format("kafka").options(**self._options(state)).load()
        if "end" in state:
            frame = frame.where(
                " OR ".join(f"(partition = {p} AND offset < {stop})" for p, stop in state["end"].items())
            )
        if "minPartitions" not in self.options:
            # A task costs as much as thousands of records: no more of them than can run at once.
            frame = frame.coalesce(capacity_of(spark)().cores)
        return self._columns(frame)

    def lag(self, state: State, progress: Progress) -> dict[str, int]:
        newest, reached = self._offsets(progress, "latestOffset"), self._offsets(progress, "endOffset")
        ends = state.get("end")
        behind = {}
        for partition, offset in newest.items():
            stop = offset if ends is None else min(offset, ends.get(partition, 0))
            behind[f"{self.topic}-{partition}"] = max(0, stop - reached.get(partition, 0))
        return behind

    def is_over(self, state: State, progress: Progress) -> bool:
        reached = self._offsets(progress, "endOffset")
        return "end" in state and all(reached.get(p, -1) >= stop for p, stop in state["end"].items())

    def redact(self, text: str) -> str:
        return redacted(text, self.options)

    def _offsets(self, progress: Progress, name: str) -> dict[str, int]:
        offsets: dict[str, int] = (progress.get(name) or {}).get(self.topic, {})
        return offsets

    def _options(self, state: State) -> dict[str, str]:
        options = {
            "kafka.bootstrap.servers": self.servers,
            "subscribe": self.topic,
            "maxOffsetsPerTrigger": str(self.most_per_tick),
            "includeHeaders": str(self.once or "headers" in self.keep).lower(),
        }
        if isinstance(self.start, datetime):
            options["startingTimestamp"] = str(int(self.start.timestamp() * 1000))
            options["startingOffsetsByTimestampStrategy"] = "latest"
        elif isinstance(self.start, str):
            options["startingOffsets"] = self.start
        else:
            # Spark wants all partitions named; -2 is its number for the earliest offset.
            offsets = {str(p): self.start.get(p, -2) for p in range(state["partitions"])}
            options["startingOffsets"] = json.dumps({self.topic: offsets})
        return options | dict(self.options)

    def _columns(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
        from pyspark.sql.pandas.types import from_arrow_schema

        if self.once:
            frame = frame.withColumn(NAME, F.expr(NAME_SQL)).withColumn("timestamp", F.expr(TIME_SQL))
        key = f"cast(key as {'binary' if self.value == 'binary' else 'string'}) as key"
        kept = [key if name == "key" else name for name in self.keep]
        kept += [f"timestamp as {TIME}", f"concat(topic, '/', partition) as {PART}", *([NAME] if self.once else [])]
        if self.value != "json":
            return frame.selectExpr(f"cast(value as {self.value}) as value", *kept)
        columns = from_arrow_schema(self.fields).add(DAMAGED, "string")
        options = {"columnNameOfCorruptRecord": DAMAGED}
        parsed = F.from_json(F.col("value").cast("string"), columns, options)
        # Of a value that is empty or not there, from_json gives nothing at all, not even its text.
        damaged = f"if(_value is null, coalesce(cast(value as string), ''), _value.{DAMAGED}) as {DAMAGED}"
        fields = [f"_value.`{name}`" for name in self.fields.names]
        return frame.withColumn("_value", parsed).selectExpr(*fields, damaged, *kept)


def kafka(
    servers: str,
    topic: str,
    schema: str | pa.Schema | None = None,
    *,
    value: Values | None = None,
    keep: Sequence[str] = ("key", "headers", "timestamp"),
    start: str | datetime | Offsets = "earliest",
    end: str | Offsets | None = None,
    once: bool = False,
    most_per_tick: int = 100_000,
    options: Mapping[str, str] | None = None,
) -> Kafka:
    """Read a topic: the columns of the JSON in its values, as `schema` says, or `value` as "string" or "binary".

    The record's own columns come along as `keep` says: key, headers, timestamp, also topic, partition and offset. A tuple is
    due at its record's timestamp. A value that is not the JSON it should be goes to the dead letters, and so does a record
    without one, as the empty text; as "string" or "binary" it is a tuple whose `value` is null.

    A new base begins at `start`: "earliest", "latest", a time, or {partition: offset}. With `end`, "latest" or {partition:
    offset}, the run is over when everything before it is served; "latest" means when the base was begun. With `once`, what
    a sink of ours wrote twice is read once, and tuples have the time they had there. A tick reads at most `most_per_tick`
    records. `options` go to Spark's connector; its security settings, for example.
    """
    check_servers(servers, topic)
    chosen = value or ("binary" if schema is None else "json")
    if chosen not in ("json", "string", "binary"):
        raise TopologyError(f"kafka: value must be 'json', 'string' or 'binary', got {chosen!r}")
    if (chosen == "json") != (schema is not None):
        fix = "add schema='...'" if schema is None else "remove schema, or value"
        raise TopologyError(f"kafka: value={chosen!r} {'without' if schema is None else 'with'} a schema; {fix}")
    kinds = {"key": "binary" if chosen == "binary" else "string", **RECORD}
    for name in keep:
        if name not in kinds:
            raise TopologyError(f"kafka: keep has {name!r}; a record has {', '.join(kinds)}")
    for name, when in (("start", start), ("end", end)):
        allowed = ("earliest", "latest") if name == "start" else ("latest",)
        if isinstance(when, str) and when not in allowed:
            raise TopologyError(
                f"kafka: {name} must be {' or '.join(map(repr, allowed))} or {{partition: offset}}, got {when!r}"
            )
    if most_per_tick < 1:
        raise TopologyError(f"kafka: most_per_tick must be 1 or more, got {most_per_tick}")
    cut = [name for name in ("minPartitions", "maxRecordsPerPartition") if name in (options or {})]
    if once and cut:
        raise TopologyError(f"kafka: once reads a partition in one piece; remove the option {cut[0]!r}")
    fields = parse_schema(schema if schema is not None else f"value {chosen}")
    twice = sorted(set(fields.names) & set(keep))
    if twice:
        left = tuple(name for name in keep if name not in twice)
        raise TopologyError(f"kafka: {twice[0]!r} is in the schema and a column of the record; write keep={left}")
    own = [field for name in keep for field in parse_schema(f"{name} {kinds[name]}")]
    return Kafka(
        schema=pa.schema([*fields, *own]),
        due=TIME,
        servers=servers,
        topic=topic,
        value=chosen,
        fields=fields,
        keep=tuple(keep),
        start=start,
        end=end,
        once=once,
        most_per_tick=most_per_tick,
        options=dict(options or {}),
        jars=KAFKA,
    )
