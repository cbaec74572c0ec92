"""What tests of several modules share. One Spark session does for all; those that kill a driver start their own."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from kafka_broker import broker_or_skip
from object_store import BUCKET, address, object_store
from pyspark.sql import SparkSession
from spark_cluster import Cluster, spark_cluster

from elastream.bench.broker import Broker
from elastream.engine import tick_session
from elastream.lanes import Store

_FOLDERS = count()

# Java that lives for seconds spends them on compiling well.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = tick_session("local[12]", lanes=12)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with broker_or_skip() as running:
        yield running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
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
