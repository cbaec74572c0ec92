"""A topic on a Kafka broker, written by Kafka's Java client in a process beside us, without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from elastream.connectors.kafka.admin import KafkaAdmin
from elastream.engine.spark.jars import folder_of
from elastream.engine.spark.java_errors import java_reason
from elastream.errors import RunFailed


class KafkaTopic:
    """One topic. Made by `kafka_topic`."""

    def __init__(self, servers: str, name: str, partitions: int, jvm: Any) -> None:
        self.servers = servers
        self.name = name
        self._jvm = jvm
        self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(self._properties())
        client = jvm.org.apache.kafka.clients.admin.AdminClient.create(self._properties())
        KafkaAdmin(jvm, client, servers, {}).create(name, partitions)
        client.close()

    def put(self, lines: Sequence[str]) -> None:
        """Write lines; each is in the topic once when this returns, for the producer is idempotent."""
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
        sent = [self._producer.send(record(self.name, line)) for line in lines]
        try:
            for one in sent:
                one.get()
        except Py4JJavaError as error:
            raise RunFailed(f"topic {self.name}: records could not be written: {java_reason(error)}") from None

    def _properties(self) -> Any:
        properties = self._jvm.java.util.HashMap()
        properties.put("bootstrap.servers", self.servers)
        # With more, the second request may be taken by a leader that refused the first because it was not ready yet; the
        # first is then out of sequence for good, and expires.
        properties.put("max.in.flight.requests.per.connection", "1")
        for part in ("key", "value"):
            properties.put(f"{part}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
        return properties


@contextmanager
def kafka_topic(servers: str, name: str, partitions: int) -> Iterator[KafkaTopic]:
    """A new topic on a broker that runs. Ctrl-C reaches us and not the Java process."""
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, token, process = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{folder_of('broker')}/*",
        javaopts=["-Xmx128m"],
        die_on_exit=True,
        enable_auth=True,
        create_new_process_group=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield KafkaTopic(servers, name, partitions, gateway.jvm)
    except Py4JJavaError as error:
        raise RunFailed(f"topic {name}: {java_reason(error)}") from None
    except Py4JError as error:
        raise RunFailed(f"topic {name}: Kafka's client in Java has ended: {error}") from None
    finally:
        gateway.shutdown()
        process.kill()
        process.wait()
        process.stdin.close()
