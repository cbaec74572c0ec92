"""On a cluster: sized by PSPS, on as many executors as there are, also when some of them die.

    spark-submit --master spark://HOST:7077 --conf spark.log.level=WARN examples/05_on_a_cluster.py /shared/primes

The argument is a directory that all machines see. Which master it is, and how many executors of what size, is spark-submit's
matter: docs/clusters.md says what standalone, YARN and Kubernetes need. With the same directory it goes on where it was.
"""

import os
import socket
import sys
from collections import Counter

from elastream import Topology, run, sources, workload


def factor(row):
    """The smallest factor of an odd number: quick for most, slow for primes."""
    number = 100_000_000_001 + 2 * row["id"]
    smallest = next((f for f in range(3, int(number**0.5) + 1, 2) if number % f == 0), number)
    # All Python workers of an executor have the same parent.
    return {"number": number, "factor": smallest, "executor": f"{socket.gethostname()}/{os.getppid()}"}


app = Topology("primes")
numbers = app.source("numbers", sources.replay(workload.steps([300, 1500, 300], seconds=6)))
factors = numbers.map("factor", factor, schema="number long, factor long, executor string", replicas=(2, 8))
factors.output("factors")

if __name__ == "__main__":
    handle = run(app, sys.argv[1], policy="psps", td_s=2)  # until the stream has ended
    rows = handle.output("factors").to_pylist()
    print(f"{sum(row['number'] == row['factor'] for row in rows)} primes among {len(rows)} numbers")
    print(f"by executor: {dict(Counter(row['executor'] for row in rows))}")
    print(handle.audit())
