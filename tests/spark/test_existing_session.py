"""A run in a session of the user's own, which was built without any setting of ours."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elastream import Topology, sources, start, workload
from elastream.errors import SettingError

PROGRAM = """
from pyspark.sql import SparkSession
from elastream import Topology, sources, start, workload

def topology():
    app = Topology("mine")
    app.source("numbers", sources.replay(workload.constant(500, 2)))
    app.source("ticks", sources.dataframe(
        lambda spark: spark.readStream.format("rate").option("rowsPerSecond", 50).load().selectExpr("value as id"), "id long"))
    app.map("square", lambda row: {"id": row["id"] ** 2}, after="numbers", schema="id long", replicas=(1, 4))
    app.output("squares", after="square")
    app.output("seen", after="ticks")
    return app

if __name__ == "__main__":
    spark = SparkSession.builder.master("local[4]").appName("mine").getOrCreate()
    adaptive = spark.conf.get("spark.sql.adaptive.enabled")
    with start(topology(), spark=spark) as handle:
        while len(handle.output("seen")) < 50 or len(handle.output("squares")) < 1000:
            assert handle.active
        audit = handle.audit()
    print("problems", audit.problems, audit.duplicates)
    print("adaptive", adaptive == spark.conf.get("spark.sql.adaptive.enabled"))
    print("rows", spark.range(7).count())
"""


def test_a_plain_session_runs_a_topology_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "mine.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "problems () 0" in done.stdout and "adaptive True" in done.stdout and "rows 7" in done.stdout
    assert "with master local[4] Spark tries no task again" in done.stderr


def test_a_session_of_spark_connect_is_refused_in_one_line() -> None:
    app = Topology("a").source("in", sources.replay(workload.constant(1, 1))).output("out")
    connected: Any = SimpleNamespace()
    with pytest.raises(SettingError, match=r"expected a pyspark\.sql\.SparkSession, got types\.SimpleNamespace"):
        start(app, spark=connected)
