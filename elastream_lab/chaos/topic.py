"""A topic on a real Kafka broker, for chaos: numbers are written to it, and the broker can be killed and started again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from elastream.connectors.kafka.admin import KafkaAdmin
from elastream.engine.spark.jars import folder_of
from elastream.engine.spark.java_errors import java_reason
from elastream.errors import RunFailed
from elastream.testing.broker import Broker, kafka_broker
from elastream_lab.chaos.flow import TOPIC

PARTITIONS = 3


class Topic:
    """Writes through Kafka's own client, in a Java process beside us: no kill of a driver reaches it."""

    def __init__(self, broker: Broker, jvm: Any) -> None:
        self._broker = broker
        self._jvm = jvm
        self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(self._properties())
        client = jvm.org.apache.kafka.clients.admin.AdminClient.create(self._properties())
        KafkaAdmin(jvm, client, broker.servers, {}).create(TOPIC, PARTITIONS)
        client.close()

    @property
    def servers(self) -> str:
        return self._broker.servers

    def put(self, lines: list[str]) -> None:
        """All lines are in the topic, each once, when this returns: the producer is idempotent, as Kafka's is by default."""
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
        sent = [self._producer.send(record(TOPIC, line)) for line in lines]
        try:
            for one in sent:
                one.get()
        except Py4JJavaError as error:
            raise RunFailed(f"chaos: numbers could not be written to the topic: {java_reason(error)}") from None

    def kill_broker(self) -> None:
        self._broker.kill()

    def start_broker(self) -> None:
        self._broker.start()

    def _properties(self) -> Any:
        properties = self._jvm.java.util.HashMap()
        properties.put("bootstrap.servers", self._broker.servers)
        # With more, the second request may be taken by a leader that refused the first because it was not ready yet; the
        # first is then out of sequence for good, and expires.
        properties.put("max.in.flight.requests.per.connection", "1")
        for part in ("key", "value"):
            properties.put(f"{part}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
        return properties


@contextmanager
def numbers_topic() -> Iterator[Topic]:
    """A topic on a broker of its own; both are gone at the end."""
    with kafka_broker() as broker:
        (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
        port, token, process = launch_gateway(
            jarpath=str(py4j),
            classpath=f"{folder_of('broker')}/*",
            javaopts=["-Xmx128m"],
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            yield Topic(broker, gateway.jvm)
        finally:
            gateway.shutdown()
            process.kill()
            process.wait()
            process.stdin.close()
