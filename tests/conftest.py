"""One Spark session for all tests that share it; those that kill a driver start their own."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from elastream.engine import tick_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = tick_session("local[12]", lanes=12)
    yield session
    session.stop()
