"""State per key: how often every user came, and windows of ten minutes, while the replicas change.

    python examples/06_state_per_key.py [BASE_DIR]

What is remembered of a user is committed with the clicks that changed it. When replicas change, key groups move with what waits
of them and with their state; `handle.state_moves` has a receipt for each change.
"""

import sys
from dataclasses import dataclass

import pandas as pd

from elastream import Topology, sources, start, workload

CLICKS = 20_000
BEGAN = pd.Timestamp("2024-01-01", tz="UTC")


def clicks(numbers):
    # Every other click is of one of a thousand users, each in turn, the rest of user 0; one a second.
    users = [int(n) // 2 * 7919 % 1000 if n % 2 else 0 for n in numbers]
    return {"user": users, "at": BEGAN + pd.to_timedelta(numbers, unit="s")}


@dataclass
class Visits:
    n: int = 0


def visits(user, rows, state):
    state.n += len(rows)
    yield {"user": user, "n": state.n}


app = Topology("visits")
arrivals = workload.constant(CLICKS / 8, 8)
by_user = app.source("clicks", sources.replay(arrivals, "user long, at timestamp", clicks)).key_by("user")
by_user.process("visits", visits, state=Visits, schema="user long, n long", replicas=(1, 8)).output("counts")
aggregate = {"clicks": "count()", "last": "max(at)"}
by_user.window("busy", time="at", every_s=600, lateness_s=60, aggregate=aggregate, replicas=(1, 4)).output("windows")

if __name__ == "__main__":
    with start(app, *sys.argv[1:], policy=None) as handle:
        handle.await_begin(60)
        handle.scale("visits", 8)
        handle.await_end()
        users = sorted(handle.state("visits").to_pylist(), key=lambda row: -row["n"])
        print(f"{len(users)} users, {sum(row['n'] for row in users)} visits; most: {users[0]}")
        windows = handle.output("windows").to_pylist()
        print(f"{len(windows)} windows of {sum(row['clicks'] for row in windows)} clicks")
        for moved in handle.state_moves:
            print(
                f"{moved.operator}: {moved.groups} key groups moved to {moved.replicas} replicas; {moved.problem or 'in order'}"
            )
        print(handle.audit())
