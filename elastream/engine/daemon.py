"""The parent of all Python workers: imports first, freezes, then forks.

Spark's own daemon collects garbage over every imported module after each task, and each worker imports for itself:
30 to 45 ms of CPU a task. Here a task costs about 3.
"""

import gc

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.ipc  # noqa: F401
from pyspark.daemon import manager

import elastream.engine.task  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
