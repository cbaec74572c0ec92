"""Online analysis of a simulation of atoms (CoMD), of the multi-level elasticity paper (figure 11): where are they, how far do they go?

Positions enter, eight tuples per iteration. `histogram` counts the atoms in every cell of a grid. `travel` is keyed by the part of the
atoms, remembers where they were, and measures how far each has gone since. `gather` puts the parts of an iteration together, and one row
per iteration is stored. The paper's rates of 10 to 1,000 iterations per second are 80 to 8,000 tuples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import DUE, Topology, parse_schema
from elastream.workload import Arrivals, ramp
from elastream_lab.apps.comd.molecular_dynamics import SPACING, Floats, shortest
from elastream_lab.apps.comd.payload import PARTS, atom_payload
from elastream_lab.apps.common.service import service
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Rows, Table

GRID = 4
"""Cells of the histogram along each axis."""

POSITIONS = parse_schema("iteration long, part long, positions array<float>")
ANALYZED = parse_schema("iteration long, atoms long, counts array<long>, travelled double, farthest double")
"""Of a part of the atoms: counts, or the sum and the greatest of the distances; the other is null."""
STORED = parse_schema("base string, iteration long, atoms long, histogram string, mean_travel double, farthest double")
GATHERED = parse_schema("pieces long, atoms long, counts array<long>, travelled double, farthest double")
RESULT = pa.schema([field for field in STORED if field.name != "base"])


def topology(
    arrivals: Arrivals | None = None,
    *,
    lattice: int = 6,
    database: str | None = None,
    service_ms: float = 0.0,
    grouping: str = "shuffle",
    replicas: int = 4,
) -> Topology:
    """`lattice` is the number of unit cells along each axis: 4 * lattice**3 atoms; the paper's default is 20.

    `database` is a file for SQLite, or postgresql://user:password@host:port/name. `service_ms` is added to the service
    of every tuple in every operator. `grouping` is the one in front of `histogram` and `store`.
    """
    each = service(grouping, replicas, service_ms)
    arrivals = arrivals or ramp(10.0 * PARTS, 100.0 * PARTS, 90.0)
    make = atom_payload(lattice)
    edge = lattice * SPACING
    store = results_in(chosen_database(database, "comd"), Table("iterations", STORED, remark=in_short))
    app = Topology("comd")
    atoms = app.source("atoms", sources.replay(arrivals, POSITIONS, make))
    histogram = atoms.batch("histogram", each.of(Histogram(edge)), schema=ANALYZED, **each.how)
    travel = atoms.key_by("part").process(
        "travel",
        each.of(Travel(edge)),
        state="last_seen long, positions_then array<float>",
        schema=ANALYZED,
        **each.sizes,
        mode="arrow",
    )
    gathered = histogram.key_by("iteration", after=travel).process(
        "gather", each.of_key(gather), state=GATHERED, schema=RESULT, **each.sizes
    )
    gathered.sink("store", each.of(store), **each.how)
    return app


@dataclass(frozen=True)
class Histogram:
    """How many atoms of each tuple are in each cell of the grid."""

    edge: float

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        positions = batch.column("positions")
        atoms = np.diff(np.asarray(positions.offsets)) // 3
        counts = cell_counts(
            np.asarray(positions.flatten()).reshape(-1, 3), np.repeat(np.arange(len(atoms)), atoms), self.edge
        )
        counts = np.pad(counts, ((0, len(atoms) - len(counts)), (0, 0)))
        offsets = np.arange(len(atoms) + 1, dtype=np.int32) * GRID**3
        nothing = pa.nulls(len(atoms), pa.float64())
        columns = [batch.column("iteration"), pa.array(atoms.astype(np.int64))]
        columns += [pa.ListArray.from_arrays(pa.array(offsets), pa.array(counts.reshape(-1))), nothing, nothing]
        return pa.RecordBatch.from_arrays([*columns, batch.column(DUE)], names=[*ANALYZED.names, DUE])


def cell_counts(positions: Floats, rows: Any, edge: float) -> Any:
    """A row of counts for each of `rows`, of the atoms that belong to it."""
    cells = np.minimum((positions * (GRID / edge)).astype(np.int64), GRID - 1)
    places = (cells[:, 0] * GRID + cells[:, 1]) * GRID + cells[:, 2]
    count = int(rows[-1]) + 1 if len(rows) else 0
    return np.bincount(rows * GRID**3 + places, minlength=count * GRID**3).reshape(count, GRID**3)


@dataclass(frozen=True)
class Travel:
    """How far the atoms of a part have gone since the iteration before, each by the shortest way through the periodic box."""

    edge: float

    def __call__(self, batch: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        parts = known.column("part").to_pylist()
        before = {
            part: (seen.as_py(), None if then.as_py() is None else np.asarray(then.values))
            for part, seen, then in zip(parts, known.column("last_seen"), known.column("positions_then"), strict=True)
        }
        atoms, travelled, farthest = [], [], []
        of, iterations = batch.column("part").to_pylist(), batch.column("iteration").to_pylist()
        for part, iteration, now in zip(of, iterations, batch.column("positions"), strict=True):
            positions = np.asarray(now.values)
            seen, then = before[part]
            if seen is not None and iteration != seen + 1:
                raise ValueError(f"part {part}: expected iteration {seen + 1}, got {iteration}")
            # Nobody has gone anywhere at the first one.
            distances = np.zeros(1) if then is None else travel_distances(positions, then, self.edge)
            atoms.append(len(positions) // 3)
            travelled.append(float(distances.sum()))
            farthest.append(float(distances.max()))
            before[part] = iteration, positions
        columns = [batch.column("iteration"), pa.array(atoms, pa.int64()), pa.nulls(len(atoms), pa.list_(pa.int64()))]
        columns += [pa.array(travelled), pa.array(farthest), batch.column(DUE)]
        state = [pa.array(parts), pa.array([before[part][0] for part in parts], pa.int64())]
        state.append(pa.array([before[part][1] for part in parts], pa.list_(pa.float32())))
        return (
            pa.RecordBatch.from_arrays(columns, names=[*ANALYZED.names, DUE]),
            pa.RecordBatch.from_arrays(state, names=["part", "last_seen", "positions_then"]),
        )


def travel_distances(now: Any, then: Any, edge: float) -> Floats:
    """Per atom; positions come one coordinate after the other."""
    apart = now.astype(np.float64).reshape(-1, 3) - then.astype(np.float64).reshape(-1, 3)
    distances: Floats = np.sqrt((shortest(apart, np.full(3, edge)) ** 2).sum(axis=1))
    return distances


def gather(iteration: int, rows: list[dict[str, Any]], state: Any) -> Iterator[dict[str, Any]]:
    """When both analyses of all parts of an iteration are there, its row leaves, and it is forgotten."""
    for row in rows:
        state.pieces = (state.pieces or 0) + 1
        if row["counts"] is not None:
            known = state.counts or [0] * GRID**3
            state.counts = [a + b for a, b in zip(known, row["counts"], strict=True)]
            state.atoms = (state.atoms or 0) + row["atoms"]
        else:
            state.travelled = (state.travelled or 0.0) + row["travelled"]
            state.farthest = max(state.farthest or 0.0, row["farthest"])
    if state.pieces == 2 * PARTS:
        yield {
            "iteration": iteration,
            "atoms": state.atoms,
            "histogram": " ".join(map(str, state.counts)),
            "mean_travel": state.travelled / state.atoms,
            "farthest": state.farthest,
        }
        state.remove()


def in_short(rows: Rows) -> str:
    """In words, of all iterations in the table."""
    if not rows:
        return "no iteration is complete"
    travel = np.mean([row[STORED.names.index("mean_travel")] for row in rows])
    farthest = max(row[STORED.names.index("farthest")] for row in rows)
    return f"{len(rows)} iterations of {rows[0][2]} atoms: {travel:.2e} sigma per iteration, at most {farthest:.2e}"
