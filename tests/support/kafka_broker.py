"""A real Kafka broker for the tests that need one, and what they ask it."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from parts import skip_or_fail
from pyspark.sql import DataFrame, SparkSession

from elastream.connectors.kafka.admin import kafka_admin
from elastream.engine.spark.jars import KAFKA, folder_of
from elastream.errors import SettingError
from elastream.testing.broker import Broker, kafka_broker


def need_kafka() -> None:
    """For tests of what starts a broker by itself."""
    for part, folder in (("connector", KAFKA.folder), ("broker", "broker")):
        if not any(folder_of(folder).glob("*.jar")):
            skip_or_fail(f"no Kafka {part} here; run make kafka, which needs Maven")


@contextmanager
def broker_or_skip() -> Iterator[Broker]:
    need_kafka()
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(kafka_broker())
        except SettingError as error:
            skip_or_fail(str(error))
        yield broker


def create_topic(spark: SparkSession, servers: str, topic: str, partitions: int = 3) -> str:
    with kafka_admin(spark, servers) as admin:
        admin.create(topic, partitions)
    return topic


def new_topic(spark: SparkSession, broker: Broker, partitions: int = 3) -> str:
    return create_topic(spark, broker.servers, f"t-{uuid.uuid4().hex[:8]}", partitions)


def put(servers: str, topic: str, rows: DataFrame) -> None:
    """Rows with the columns that Spark's writer knows: key, value, headers, partition."""
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def put_ids(spark: SparkSession, servers: str, topic: str, first: int, stop: int) -> None:
    """Records {"id": n} with key k-n and a header from=n."""
    rows = spark.range(first, stop, 1, 2).selectExpr(
        "concat('k-', id) as key",
        "to_json(struct(id)) as value",
        "array(named_struct('key', 'from', 'value', cast(cast(id as string) as binary))) as headers",
    )
    put(servers, topic, rows)


def records(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """All that a plain reader sees."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    return spark.read.format("kafka").options(**options).load()


def ids_in_topic(rows: DataFrame) -> Counter[int]:
    return Counter(json.loads(bytes(row.value))["id"] for row in rows.select("value").collect())
