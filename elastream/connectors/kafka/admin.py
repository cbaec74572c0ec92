"""Questions to a Kafka cluster, by the Java client that comes with Spark's connector: partitions, newest offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elastream.engine.spark.java_errors import java_reason
from elastream.engine.spark.redaction import redacted
from elastream.errors import SettingError, TopologyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BROKER = re.compile(r"\s*(?:\w+://)?(?:\[[^\]\s]+\]|[^\s:,/\[\]]+):\d{1,5}\s*")

PATIENCE_S = 20
"""A cluster that has not answered by then is taken to be out of reach."""


def check_servers(servers: object, topic: object) -> None:
    """Raise when these cannot be the addresses of brokers and the name of a topic."""
    if not isinstance(servers, str) or not all(_BROKER.fullmatch(one) for one in servers.split(",")):
        given = repr(servers) if isinstance(servers, str) else f"a {type(servers).__name__}"
        raise TopologyError(f"kafka: servers must be text such as 'host:9092,other:9092', got {given}")
    if not isinstance(topic, str) or not topic:
        raise TopologyError(f"kafka: expected the name of one topic as text, got {topic!r}")


class KafkaAdmin:
    """One connection, for as long as the `with` block of `kafka_admin` lasts."""

    def __init__(self, jvm: Any, client: Any, servers: str, options: Mapping[str, str]) -> None:
        self._jvm = jvm
        self._client = client
        self._servers = servers
        self._options = options

    def partitions(self, topic: str, where: str) -> int:
        """How many partitions a topic has; `where` names the source or sink for the error."""
        topics = self._jvm.java.util.ArrayList()
        topics.add(topic)
        found = self._answer(self._client.describeTopics(topics).allTopicNames(), topic, where)
        return int(found.get(topic).partitions().size())

    def newest(self, topic: str, partitions: int, where: str) -> dict[str, int]:
        """The offset that the next record of each partition will get."""
        wanted = self._jvm.java.util.HashMap()
        places = [self._jvm.org.apache.kafka.common.TopicPartition(topic, number) for number in range(partitions)]
        for place in places:
            wanted.put(place, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())
        found = self._answer(self._client.listOffsets(wanted).all(), topic, where)
        return {str(place.partition()): int(found.get(place).offset()) for place in places}

    def create(self, topic: str, partitions: int) -> None:
        """A topic with one copy of everything: for tests, benchmarks and examples."""
        topics = self._jvm.java.util.ArrayList()
        topics.add(self._jvm.org.apache.kafka.clients.admin.NewTopic(topic, partitions, 1))
        self._client.createTopics(topics).all().get()

    def _answer(self, asked: Any, topic: str, where: str) -> Any:
        try:
            return asked.get()
        except Exception as error:
            if "UnknownTopicOrPartition" in str(error):
                raise SettingError(f"{where}: no topic {topic!r} at {self._servers}; create it") from None
            said = redacted(java_reason(error), self._options)
            raise SettingError(f"{where}: no answer from Kafka at {self._servers}: {said}") from None


@contextmanager
def kafka_admin(spark: SparkSession, servers: str, options: Mapping[str, str] | None = None) -> Iterator[KafkaAdmin]:
    """`options` are Spark's: those that begin with `kafka.` are the client's."""
    jvm: Any = spark._jvm
    properties = jvm.java.util.HashMap()
    properties.put("bootstrap.servers", servers)
    for limit in ("request.timeout.ms", "default.api.timeout.ms"):
        properties.put(limit, str(PATIENCE_S * 1000))
    options = options or {}
    for name, value in options.items():
        if name.startswith("kafka."):
            properties.put(name.removeprefix("kafka."), value)
    try:
        client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
    except Exception as error:
        said = redacted(java_reason(error), options)
        raise SettingError(f"kafka at {servers}: {said}; mend the address or the options") from None
    try:
        yield KafkaAdmin(jvm, client, servers, options)
    finally:
        client.close()
