"""The parent of all Python workers: imports first, freezes, then forks.

Spark's own daemon collects garbage over every imported module after each task, and each worker imports for itself:
30 to 45 ms of CPU a task, and half a second for a worker's first. Here a task costs about 3.
"""

import gc
from importlib import import_module

from pyspark.daemon import manager

PRELOADED = (
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyarrow.ipc",
    "pyarrow.pandas_compat",
    "pyarrow.vendored.version",
    "pyspark.messages.socket",
    "pyspark.sql.conversion",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "elastream.connectors.dataframes.ends",
    "elastream.connectors.query.lane_reader",
    "elastream.connectors.sources",
    "elastream.engine.hosts.spark_hosts",
    "elastream.engine.worker.host",
)
"""All that a task of ours needs; a test sees to it that nothing is missing."""

for name in PRELOADED:
    import_module(name)

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
