"""The smallest application: numbers flow in, one to four replicas square them, all of them can be read at the end.

    python examples/01_minimal.py

Or watch it: elastream run examples/01_minimal.py:app
"""

from elastream import Topology, sources, start, workload


def square(row):
    return {"id": row["id"], "square": row["id"] ** 2}


app = Topology("squares")
numbers = app.source("numbers", sources.replay(workload.constant(per_second=1000, seconds=2)))
squares = numbers.map("square", square, schema="id long, square long", replicas=(1, 4))
squares.output("squares")

if __name__ == "__main__":
    with start(app, policy=None) as handle:  # without a policy replicas are changed by hand
        handle.scale("square", 3)  # while the stream flows
        handle.await_end()
        print(handle.output("squares").sort_by("id").slice(1, 3).to_pylist())
        print(handle.audit())
