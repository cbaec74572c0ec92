"""Spark's checkpoint as files, on any filesystem that Spark knows: what is in it, what came since, how to take that back."""

import json
import time
from typing import Any

from pyspark.sql import SparkSession

from elastream.errors import BaseUnusable


class Checkpoint:
    """Of one query, which stands still while anything is changed."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        jvm: Any = spark._jvm
        self._jvm = jvm
        root = jvm.org.apache.hadoop.fs.Path(path)
        self._files = root.getFileSystem(spark._jsc.hadoopConfiguration())

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
        # Java makes one text of a folder's paths: a call for each file would take a second for a thousand of them.
        apache, found = self._jvm.org.apache, set[str]()
        path_of = apache.commons.collections4.functors.InvokerTransformer.invokerTransformer("getPath")
        for folder in ("offsets", "commits", "state"):
            listed = self._files.listFiles(apache.hadoop.fs.Path(f"{self.path}/{folder}"), True)
            files = apache.hadoop.util.functional.RemoteIterators.toList(listed)
            paths = apache.commons.collections4.CollectionUtils.collect(files, path_of)
            found.update(apache.commons.lang3.StringUtils.join(paths, "\n").splitlines())
        return found

    def keep_only(self, files: set[str]) -> None:
        """Take back what was added since these were all."""
        there = self.files()
        if not files & there:
            raise BaseUnusable(
                f"checkpoint {self.path}: has none of the files that it had before a rescale; give back the checkpoint that was "
                "rescaled, at the same place"
            )
        for path in there - files:
            self._files.delete(self._jvm.org.apache.hadoop.fs.Path(path), False)
        if left := self.files() - files:
            raise BaseUnusable(
                f"checkpoint {self.path}: {min(left)} could not be deleted; see that we may, and try again"
            )
