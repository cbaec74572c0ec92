"""The parent of the workers has imported what they need."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path

from elastream import Topology, run, sources
from elastream.workload import constant


def report(batch):
    Path("modules").write_text("\\n".join(sys.modules))
    return batch


if __name__ == "__main__":
    flow = Topology("born").source("in", sources.replay(constant(10, 1)))
    flow.batch("a", report).sink("end", lambda batch, delivery: None)
    run(flow, "base", master="local[2]", policy=None)
"""


def test_a_worker_is_born_with_all_the_modules_that_a_task_needs(tmp_path: Path) -> None:
    """Else every new worker imports them for itself, and a rescale waits for that."""
    (tmp_path / "born.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "born.py"], cwd=tmp_path, check=True, timeout=180)
    listed = "import sys, elastream.engine.spark.daemon; print('\\n'.join(sys.modules))"
    preloaded = subprocess.run(
        [sys.executable, "-c", listed], capture_output=True, text=True, check=True
    ).stdout.split()
    libraries = ("pyspark", "pyarrow", "pandas", "numpy", "elastream")
    missing = set((tmp_path / "modules").read_text().split()) - set(preloaded)
    assert {name for name in missing if name.startswith(libraries)} == set()
