"""Spark's checkpoint as files, on any filesystem that Spark knows: what is in it, what came since, how to take that back."""

import json
import re
import time
from typing import Any

from pyspark.sql import SparkSession

_LISTED = re.compile(r"path=([^;]+); isDirectory=(true|false)")


class Checkpoint:
    """Of one query, which stands still while anything is changed."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._root = jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._root.getFileSystem(spark._jsc.hadoopConfiguration())

    def wait_until_committed(self, batch: int, timeout_s: float) -> bool:
        """Spark writes this down a moment after our commit."""
        until = time.monotonic() + timeout_s
        commit = self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/commits/{batch}")
        while not self._files.exists(commit):
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def partitions(self, batch: int) -> int:
        """Into how many parts the state was cut in this batch."""
        stream = self._files.open(self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/offsets/{batch}"))
        try:
            lines = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8").splitlines()
        finally:
            stream.close()
        settings = next(json.loads(line)["conf"] for line in lines if line.startswith('{"batchWatermarkMs"'))
        return int(settings["spark.sql.shuffle.partitions"])

    def files(self) -> set[str]:
        """All that a batch adds to: offsets, commits, state."""
        found: set[str] = set()
        folders = [f"{self.path}/{name}" for name in ("offsets", "commits", "state")]
        while folders:
            # One call for a folder: one for each file would take a second for a thousand of them.
            listed = self._files.listStatus(self._jvm.org.apache.hadoop.fs.Path(folders.pop()))
            for path, is_folder in _LISTED.findall(self._jvm.org.apache.commons.lang3.ArrayUtils.toString(listed)):
                if is_folder == "true":
                    folders.append(path)
                else:
                    found.add(path)
        return found

    def keep_only(self, files: set[str]) -> None:
        """Take back what was added since these were all."""
        for path in self.files() - files:
            self._files.delete(self._jvm.org.apache.hadoop.fs.Path(path), False)
