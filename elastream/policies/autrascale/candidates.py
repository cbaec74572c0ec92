"""Sizes among which the next are chosen: a small space whole, of a large one some drawn and those on lines through a point."""

from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from elastream.policies.autrascale.models import Sizes

Rows = npt.NDArray[np.int64]

ALL = 1024
"""A space with no more configurations than this is searched whole."""
DRAWN = 256


def is_small(base: Sizes, most: Sizes) -> bool:
    return prod(top - least + 1 for least, top in zip(base, most, strict=True)) <= ALL


@lru_cache(maxsize=8)
def everywhere(base: Sizes, most: Sizes) -> Rows:
    """All configurations of a small space, a row each."""
    axes = [np.arange(least, top + 1) for least, top in zip(base, most, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(base))


def drawn(base: Sizes, most: Sizes, random: np.random.Generator) -> Rows:
    """Evenly by how busy replicas are, so that there are as many near the base as far from it."""
    least, top = np.asarray(base), np.asarray(most)
    busy = random.uniform(least / top, 1.0, size=(DRAWN, len(base)))
    return np.clip(np.rint(least / busy).astype(np.int64), least, top)


def lines(through: Sizes, base: Sizes, most: Sizes) -> Rows:
    """Configurations that differ from one in at most one operator, which has any size that it may."""
    places, values = _axes(base, most)
    rows = np.tile(np.asarray(through, np.int64), (len(places), 1))
    rows[np.arange(len(places)), places] = values
    return rows


@lru_cache(maxsize=8)
def _axes(base: Sizes, most: Sizes) -> tuple[Rows, Rows]:
    pairs = [
        (place, size)
        for place, (least, top) in enumerate(zip(base, most, strict=True))
        for size in range(least, top + 1)
    ]
    both = np.asarray(pairs, np.int64)
    return both[:, 0], both[:, 1]
