"""Jars that Spark does not bring along: where `make kafka` and `make jdbc` put them, and what to do when they are missing."""

import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elastream.errors import SettingError
from elastream.topology import Graph

CACHE = "ELASTREAM_CACHE"
"""Names the directory of the cache; without it, ~/.cache/elastream."""


@dataclass(frozen=True)
class Jars:
    """One thing that some sources and sinks need."""

    what: str
    folder: str
    """Below the cache."""
    class_name: str
    """Spark has it when it can load this class."""
    get: str
    """How to come by it."""


KAFKA = Jars(
    "Spark's Kafka connector",
    f"connector-{version('pyspark')}",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "run make kafka",
)
POSTGRESQL = Jars("PostgreSQL's JDBC driver", "jdbc", "org.postgresql.Driver", "run make jdbc")


def cache_folder() -> Path:
    base = os.environ.get(CACHE)
    return Path(base) if base else Path.home() / ".cache" / "elastream"


def folder_of(jars: str) -> Path:
    return cache_folder() / "jars" / jars


def found_jars() -> list[Path]:
    """All that the cache has for a session of this Spark."""
    return [jar for jars in (KAFKA, POSTGRESQL) for jar in sorted(folder_of(jars.folder).glob("*.jar"))]


def check_jars(graph: Graph, spark: Any = None) -> None:
    """Every source and sink has what it needs: in the cache, or, when there is a session, in that."""
    for operator in graph.operators:
        jars: Jars | None = getattr(operator.source or operator.writer, "jars", None)
        if jars is None:
            continue
        if spark is None and not any(folder_of(jars.folder).glob("*.jar")):
            raise SettingError(
                f"{operator.kind} {operator.name!r}: expected {jars.what} in {folder_of(jars.folder)}; {jars.get}"
            )
        if spark is not None and not _loads(spark, jars.class_name):
            raise SettingError(
                f"{operator.kind} {operator.name!r}: the Spark session does not have {jars.what}; {jars.get}, then make the "
                "session with elastream.session()"
            )


def _loads(spark: Any, class_name: str) -> bool:
    return bool(spark._jvm.org.apache.spark.util.Utils.classIsLoadable(class_name))
