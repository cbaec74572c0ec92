"""`elastream run --master` and spark-submit, against a real standalone cluster."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from flows import wait_for

from elastream.testing.spark_cluster import Cluster

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180


def test_the_tweets_are_sized_by_psps_on_the_cluster_and_an_executor_may_die(cluster: Cluster, tmp_path: Path) -> None:
    said, results = tmp_path / "said", tmp_path / "results.sqlite"
    words = f"run tweets --master {cluster.master} --base {tmp_path}/base --report {tmp_path}/report --database {results} --json"
    words += " --trace steps:rates=40/240/40,seconds=9 --policy psps --td 2 --service-ms 5 --pool 4"
    with (
        said.open("w") as heard,
        subprocess.Popen(
            [sys.executable, "-m", "elastream.cli.main", *words.split()],
            stdout=subprocess.PIPE,
            stderr=heard,
            text=True,
            env=cluster.environment,
        ) as process,
    ):
        flows = re.compile(r"^tick \d+  in \d+/s  out [1-9]", re.MULTILINE)
        wait_for(lambda: flows.search(said.read_text()) or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None, said.read_text()
        cluster.kill_executor()
        printed, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said.read_text()
    report = json.loads(printed)
    assert report["events"] == {
        "entered": 960,
        "finished": 960,
        "dropped": 0,
        "queued": 0,
        "duplicates": 0,
        "created": 0,
        "dead_letters": 0,
    }
    assert report["rescales"] > 0
    with closing(sqlite3.connect(results)) as stored:
        assert stored.execute("SELECT count(*), count(DISTINCT id) FROM tweets").fetchone() == (960, 960)


def test_the_example_runs_by_spark_submit_as_its_head_says(cluster: Cluster, tmp_path: Path) -> None:
    example = ROOT / "examples" / "05_on_a_cluster.py"
    line = re.search(r"^    (spark-submit .*)$", example.read_text(), re.MULTILINE)
    assert line is not None
    words = line[1].replace("spark://HOST:7077", cluster.master).replace("/shared", str(tmp_path)).split()
    here = Path(sys.executable).parent
    done = subprocess.run(
        [here / words[0], *words[1:]],
        cwd=ROOT,
        env=cluster.environment | {"PATH": f"{here}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "primes among 4200 numbers" in done.stdout
    assert len(re.findall(r"'\S+/\d+': \d+", done.stdout)) == 2, "not every executor had a part"
    assert "read 4,200 = finished 4,200 + dropped 0 + dead letters 0 + queued 0; duplicates 0" in done.stdout
