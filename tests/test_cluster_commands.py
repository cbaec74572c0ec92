"""`elastream run --master` and spark-submit, against a real standalone cluster."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from spark_cluster import Cluster

HERE = Path(__file__).parent
PATIENCE_S = 120


def test_the_tweets_are_sized_by_psps_on_the_cluster_and_an_executor_may_die(cluster: Cluster, tmp_path: Path) -> None:
    words = [
        "tweets",
        "--master",
        cluster.master,
        "--base",
        str(tmp_path / "base"),
        "--report",
        str(tmp_path / "report"),
    ]
    words += ["--trace", "steps:rates=40/240/40,seconds=9", "--policy", "psps", "--td", "2", "--service-ms", "5"]
    words += ["--pool", "4", "--database", str(tmp_path / "results.sqlite"), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "elastream.cli.main", "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cluster.environment,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if re.match(r"tick \d+  in \d+/s  out [1-9]", line):
                cluster.kill_executor()
                break
        else:
            raise AssertionError("".join(said))
        threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True).start()
        printed = process.stdout.read()
        assert process.wait(PATIENCE_S) == 0, "".join(said)
    report = json.loads(printed)
    assert report["events"] == {"entered": 960, "finished": 960, "dropped": 0, "queued": 0, "duplicates": 0}
    assert report["rescales"] > 0
    with sqlite3.connect(tmp_path / "results.sqlite") as results:
        assert results.execute("SELECT count(*), count(DISTINCT id) FROM tweets").fetchone() == (960, 960)


def test_the_example_runs_by_spark_submit_as_its_head_says(cluster: Cluster, tmp_path: Path) -> None:
    example = HERE.parent / "examples" / "05_on_a_cluster.py"
    line = re.search(r"^    (spark-submit .*)$", example.read_text(), re.MULTILINE)
    assert line is not None
    words = line[1].replace("spark://HOST:7077", cluster.master).replace("/shared", str(tmp_path)).split()
    done = subprocess.run(
        [Path(sys.executable).with_name(words[0]), *words[1:]],
        cwd=HERE.parent,
        env=cluster.environment | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "primes among 4200 numbers" in done.stdout
    assert len(re.findall(r"'\S+/\d+': \d+", done.stdout)) == 2, "not every executor had a part"
    assert "entered=4200, finished=4200, dropped=0, queued=0, duplicates=0" in done.stdout
