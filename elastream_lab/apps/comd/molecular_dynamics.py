"""A molecular dynamics simulation as CoMD's: the size of a lattice enters; positions at every time step leave.

Atoms of copper begin in a face-centred cubic lattice, four per unit cell, with velocities drawn for 600 K. They attract and repel one
another by the potential of Lennard and Jones, cut off at 2.5 sigma and shifted so that it ends at 0, in a box with periodic bounds.
Velocity Verlet moves them by a femtosecond per step. Lengths are in sigma, energies in epsilon, masses in that of an atom.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.intp]

SPACING = 3.615 / 2.315
"""Edge of a unit cell of copper."""
TEMPERATURE = 600 * 8.617e-5 / 0.167
STEP = 0.002175
"""A femtosecond."""
CUTOFF = 2.5
SKIN = 0.3
"""Pairs that are so much farther apart than the cut-off are remembered, too: they may come nearer."""
LEAST_CELLS = 4
"""In a smaller box an atom would meet another and its image."""

_AT_CUTOFF = 4 * (CUTOFF**-12 - CUTOFF**-6)
_BASIS = np.array([[0.25, 0.25, 0.25], [0.25, 0.75, 0.75], [0.75, 0.25, 0.75], [0.75, 0.75, 0.25]])


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One time step. Positions lie within the box."""

    positions: Floats
    velocities: Floats
    potential: float


def simulate_atoms(cells: tuple[int, int, int], seed: int = 0) -> Iterator[Snapshot]:
    """Time steps without end, the first one the lattice itself. The same seed gives the same atoms."""
    box = np.array(cells) * SPACING
    positions, velocities = lattice(cells), _velocities(4 * int(np.prod(cells)), np.random.default_rng(seed))
    pairs, listed_at = near_pairs(positions, box), positions.copy()
    forces, potential = forces_between(positions, pairs, box)
    while True:
        yield Snapshot(positions.copy(), velocities.copy(), potential)
        velocities = velocities + 0.5 * STEP * forces
        positions = (positions + STEP * velocities) % box
        moved = shortest(positions - listed_at, box)
        if 4 * (moved**2).sum(axis=1).max() > SKIN**2:
            pairs, listed_at = near_pairs(positions, box), positions.copy()
        forces, potential = forces_between(positions, pairs, box)
        velocities = velocities + 0.5 * STEP * forces


def lattice(cells: tuple[int, int, int]) -> Floats:
    """Four atoms per unit cell, cell after cell."""
    corners = np.stack(np.meshgrid(*map(np.arange, cells), indexing="ij"), axis=-1).reshape(-1, 1, 3)
    positions: Floats = ((corners + _BASIS) * SPACING).reshape(-1, 3)
    return positions


def near_pairs(positions: Floats, box: Floats) -> Pairs:
    """All pairs of atoms within the cut-off and the skin, each once, in a fixed order."""
    from scipy.spatial import cKDTree

    pairs: Pairs = cKDTree(positions, boxsize=box).query_pairs(CUTOFF + SKIN, output_type="ndarray")
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def forces_between(positions: Floats, pairs: Pairs, box: Floats) -> tuple[Floats, float]:
    """Forces on all atoms, and the potential energy."""
    one, other = pairs.T
    apart = shortest(positions[one] - positions[other], box)
    squares = (apart**2).sum(axis=1)
    near = squares < CUTOFF**2
    one, other, apart, squares = one[near], other[near], apart[near], squares[near]
    sixth = squares**-3
    pull = (24 * sixth * (2 * sixth - 1) / squares)[:, None] * apart
    count = len(positions)
    forces = [np.bincount(one, pull[:, axis], count) - np.bincount(other, pull[:, axis], count) for axis in range(3)]
    return np.stack(forces, axis=1), float((4 * sixth * (sixth - 1) - _AT_CUTOFF).sum())


def shortest(apart: Floats, box: Floats) -> Floats:
    """Differences of positions, each to the nearest of an atom's images."""
    nearest: Floats = apart - box * np.round(apart / box)
    return nearest


def _velocities(count: int, random: np.random.Generator) -> Floats:
    """Maxwell's distribution, with no motion of the whole and just the temperature."""
    drawn = random.standard_normal((count, 3))
    drawn -= drawn.mean(axis=0)
    scaled: Floats = drawn * np.sqrt(3 * TEMPERATURE * count / (drawn**2).sum())
    return scaled
