"""A topic on a real Kafka broker, for chaos: numbers are written to it, and the broker can be killed and started again."""

from collections.abc import Iterator
from contextlib import contextmanager

from elastream.testing.broker import Broker, kafka_broker
from elastream.testing.topic import KafkaTopic, kafka_topic
from elastream_lab.chaos.flow import TOPIC

PARTITIONS = 3


class Topic:
    """Writes in a process beside us: no kill of a driver reaches it."""

    def __init__(self, broker: Broker, topic: KafkaTopic) -> None:
        self._broker = broker
        self._topic = topic

    @property
    def servers(self) -> str:
        return self._broker.servers

    def put(self, lines: list[str]) -> None:
        """All lines are in the topic, each once, when this returns."""
        self._topic.put(lines)

    def kill_broker(self) -> None:
        self._broker.kill()

    def start_broker(self) -> None:
        self._broker.start()


@contextmanager
def numbers_topic() -> Iterator[Topic]:
    """A topic on a broker of its own; both are gone at the end."""
    with kafka_broker() as broker, kafka_topic(broker.servers, TOPIC, PARTITIONS) as topic:
        yield Topic(broker, topic)
