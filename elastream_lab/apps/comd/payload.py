"""Positions of atoms: a tuple's number enters; a part of the atoms at one iteration leaves, the same each time.

A simulation goes from one step to the next, and a source must give any tuple again. So a film of some hundred time steps is made
once, in the driver, and travels to the workers, where it is shown to its end, then backwards to its beginning, and so on. That
is a motion of the same atoms by the same laws: turn all velocities round, and velocity Verlet goes back the way it came. Two
iterations that follow one another are always two steps of the simulation that do.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.errors import SettingError
from elastream_lab.apps.comd.molecular_dynamics import LEAST_CELLS, SPACING, simulate_atoms
from elastream_lab.apps.common.scatter import Numbers

PARTS = 8
"""Tuples per iteration: as CoMD's box is cut in two along each axis, the atoms come in eighths."""
FRAMES, FILM_BYTES = 200, 8_000_000
"""A film has so many time steps, or as many as weigh so much: it travels whole to every worker."""
MOST_CELLS = 32
"""131,072 atoms: of more, a film would be a few time steps."""


@dataclass(frozen=True, eq=False)
class Film:
    """Time steps of a simulation, in single precision."""

    frames: npt.NDArray[np.float32]
    """By time step, atom and axis."""
    box: tuple[float, float, float]

    def shown(self, iterations: Numbers) -> Numbers:
        """The time step that is seen at each iteration: forwards, then backwards, and so on."""
        last = len(self.frames) - 1
        place = iterations % (2 * last)
        return np.where(place <= last, place, 2 * last - place)


class AtomPayload:
    """Called with numbers, makes the source's columns. The film is made when it is needed, or before it travels."""

    def __init__(self, cells: int, film: Film | None = None) -> None:
        self.cells = cells
        self._film = film

    @property
    def film(self) -> Film:
        if self._film is None:
            self._film = make_film(self.cells)
        return self._film

    def __reduce__(self) -> tuple[type["AtomPayload"], tuple[int, Film]]:
        return AtomPayload, (self.cells, self.film)

    def __call__(self, numbers: Numbers) -> dict[str, Any]:
        iterations, parts = np.divmod(numbers, PARTS)
        frames = self.film.shown(iterations)
        bounds = part_bounds(self.film.frames.shape[1])
        pieces = [
            self.film.frames[frame, bounds[part] : bounds[part + 1]].reshape(-1)
            for frame, part in zip(frames.tolist(), parts.tolist(), strict=True)
        ]
        ends = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
        positions = np.concatenate(pieces) if pieces else np.empty(0, np.float32)
        return {
            "iteration": iterations,
            "part": parts,
            "positions": pa.ListArray.from_arrays(pa.array(ends), pa.array(positions)),
        }


def atom_payload(cells: int) -> AtomPayload:
    if isinstance(cells, bool) or not isinstance(cells, int) or not LEAST_CELLS <= cells <= MOST_CELLS:
        raise SettingError(f"lattice must be {LEAST_CELLS}..{MOST_CELLS} unit cells along each axis, got {cells!r}")
    return AtomPayload(cells)


def make_film(cells: int) -> Film:
    """Of a cube of so many unit cells along each axis."""
    count = max(2, min(FRAMES, FILM_BYTES // (4 * cells**3 * 12)))
    steps = islice(simulate_atoms((cells, cells, cells)), count)
    edge = cells * SPACING
    return Film(np.stack([step.positions for step in steps]).astype(np.float32), (edge, edge, edge))


def part_bounds(atoms: int) -> Numbers:
    """Where the parts of the atoms begin, and the last one ends."""
    return np.arange(PARTS + 1, dtype=np.int64) * atoms // PARTS
