"""An archive of Spark's classes, as Java has read and checked them: with it Spark starts in half the time.

`make setup` makes it, once per installation; without it everything works, a few seconds later. Java itself sees whether an
archive belongs to it and to these jars, and passes over one that does not.
"""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from elastream.engine.spark.jars import cache_folder

TIMEOUT_S = 180.0

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_path() -> Path:
    return cache_folder() / "classes" / f"spark-{version('pyspark')}.jsa"


def java_options() -> list[str]:
    """For the driver's Java: use the archive, or make it, when this process was started for that."""
    if made := os.environ.get("ELASTREAM_MAKE_ARCHIVE"):
        return [f"-XX:ArchiveClassesAtExit={made}", *_QUIET]
    path = archive_path()
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", *_QUIET] if path.exists() else []


def make_archive() -> bool:
    """Start Spark, run a little of everything, and let Java write down which classes that took. False when it cannot."""
    path = archive_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    try:
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env=os.environ | {"ELASTREAM_MAKE_ARCHIVE": str(new)},
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode or not new.exists():
            return False
        new.replace(path)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        new.unlink(missing_ok=True)


_SCRIPT = """
from pyspark import SparkContext
from elastream.engine.spark.session import session

spark = session()
spark.sparkContext.parallelize([1], 1).map(lambda x: x).collect()
spark.range(10).groupBy("id").count().collect()
java = SparkContext._gateway.proc
spark.stop()
java.stdin.close()
java.wait()
"""

if __name__ == "__main__":
    if not archive_path().exists() and not make_archive():
        sys.stderr.write("Spark's classes could not be archived; it works without, and starts a few seconds later\n")
