"""A Kafka broker of one's own, for tests and benchmarks: a real one, in KRaft mode, on free ports of the loopback."""

import base64
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elastream.engine.spark.jars import folder_of
from elastream.errors import SettingError
from elastream.testing.ports import free_ports

_LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"

_CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
num.network.threads=2
num.io.threads=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""
# A broker that was killed may register again when its session is over: by default that is after nine seconds.


class Broker:
    """`servers` reaches it; what it stores outlives `stop`, `kill` and `start`."""

    def __init__(self, jars: Path, folder: Path, port: int | None = None) -> None:
        """`port`: of the loopback; None: a free one."""
        self._jars = jars
        self._folder = folder
        free, controller = free_ports(2)
        self._port = free if port is None else port
        self._configuration = folder / "server.properties"
        self._configuration.write_text(_CONFIGURATION.format(folder=folder, port=self._port, controller=controller))
        self._process: subprocess.Popen[bytes] | None = None
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # One word: an identity may begin with "-".
        words = ["kafka.tools.StorageTool", "format", f"--cluster-id={identity}", "-c", str(self._configuration)]
        done = subprocess.run(self._java(*words), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SettingError(f"kafka: its storage could not be formatted: {done.stderr.strip()[-300:]!r}")

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Returns when it listens; clients wait by themselves for the rest."""
        with (self._folder / "log").open("ab") as log:
            words = self._java("kafka.Kafka", str(self._configuration))
            self._process = subprocess.Popen(words, cwd=self._folder, stdout=log, stderr=log)
        until = time.monotonic() + 60
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > until:
                raise SettingError(f"kafka: did not start: {(self._folder / 'log').read_text()[-300:]!r}")
            time.sleep(0.05)

    def kill(self) -> None:
        """As a machine that is switched off."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()

    def _java(self, *words: str) -> list[str]:
        return ["java", "-Xmx512m", _LOGGING, "-cp", f"{self._jars}/*", *words]

    def _listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


@contextmanager
def kafka_broker(port: int | None = None) -> Iterator[Broker]:
    """A running broker, gone with all it stored at the end."""
    jars = folder_of("broker")
    if not any(jars.glob("*.jar")):
        raise SettingError(f"no Kafka broker in {jars}; run make kafka")
    folder = Path(tempfile.mkdtemp(prefix="elastream-kafka-"))
    try:
        broker = Broker(jars, folder, port)
        try:
            broker.start()
            yield broker
        except BaseException:
            # What it stores goes with it: it need not end in order.
            broker.kill()
            raise
        broker.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
