"""What tests of several modules share. One Spark session does for all; those that kill a driver start their own."""

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from kafka_broker import broker_or_skip
from object_store import BUCKET, address, object_store
from parts import skip_or_fail
from pyspark.sql import SparkSession

from elastream.engine import session
from elastream.lanes import Store
from elastream.testing.broker import Broker
from elastream.testing.spark_cluster import Cluster, spark_cluster

_FOLDERS = count()

# Tests do not assert seconds.
settings.register_profile("elastream", deadline=None)
settings.load_profile("elastream")

SLOW_FIXTURES = {"spark", "broker", "cluster", "driver", "database", "browser", "redis"}
SLOW_FOLDER = "spark"
"""Tests in a folder of this name start Spark, a browser or many processes by themselves."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make fast` leaves out what needs Spark, a broker, a database or a browser."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & SLOW_FIXTURES or item.path.parent.name == SLOW_FOLDER:
            item.add_marker("slow")


# Java that lives for seconds spends them on compiling well.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session("local[12]")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with broker_or_skip() as running:
        yield running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        skip_or_fail("no Java here; make setup says how to get it")
    with spark_cluster() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "base"))


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with object_store() as place:
        yield place


@pytest.fixture
def uri(endpoint: str) -> str:
    return address(endpoint, f"{BUCKET}/run-{next(_FOLDERS)}")
