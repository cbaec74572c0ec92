"""The subspace method: features of normal times enter, a model leaves that tells how far others are from normal.

Principal components span what is normal: how a network's numbers go up and down together. What is left of a vector outside of that
subspace is small in normal times. The square of its length is compared with the Q-statistic of Jackson and Mudholkar (1979), the
value that it passes in normal times with a small probability; Lakhina and others (SIGCOMM 2004) find anomalies of traffic so.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elastream.codec import convert, decode, encode
from elastream.errors import SettingError
from elastream_lab.apps.ddos.features import FEATURES, Floats

VERSION = 1
EXPLAINED = 0.9
"""The share of the variance that the normal subspace has."""
DEVIATE = 3.0902
"""Of a normal distribution, passed with a probability of 0.001."""
LEAST_WINDOWS = 2 * len(FEATURES)


@dataclass(frozen=True, eq=False)
class SubspaceModel:
    window_s: int
    """How long the windows are that it was learned from, and that it is for."""
    windows: int
    """How many it was learned from."""
    mean: Floats
    scale: Floats
    components: Floats
    """The normal subspace: one row per component, one column per feature."""
    limit: float
    """The largest residual that is normal."""

    def scores(self, features: Floats) -> Floats:
        """Per row the length of its residual, in parts of the limit: above 1 is not normal."""
        lengths: Floats = np.sqrt((self.residuals(features) ** 2).sum(axis=1))
        return lengths / self.limit

    def residuals(self, features: Floats) -> Floats:
        scaled = (features - self.mean) / self.scale
        outside: Floats = scaled - scaled @ self.components.T @ self.components
        return outside


@dataclass(frozen=True)
class ModelFile:
    """A model as its JSON file has it."""

    version: int
    features: tuple[str, ...]
    window_s: int
    windows: int
    limit: float
    mean: list[float]
    scale: list[float]
    components: list[list[float]]


def encode_model(model: SubspaceModel) -> bytes:
    """The content of the file that `read_model` reads."""
    return encode({"version": VERSION, "features": FEATURES, **vars(model)}, indent=1) + b"\n"


def fit_subspace(features: Floats, window_s: int) -> SubspaceModel:
    """From the features of normal windows, one row each."""
    if len(features) < LEAST_WINDOWS:
        raise SettingError(
            f"learning: expected {LEAST_WINDOWS} windows or more, got {len(features)} of {window_s} s; "
            "give more traffic or shorter windows"
        )
    mean, scale = features.mean(axis=0), features.std(axis=0)
    # A feature that is the same everywhere has no scale; any other value of it is far from normal.
    scale = np.where(scale > 1e-9, scale, 1.0)
    _, singular, directions = np.linalg.svd((features - mean) / scale, full_matrices=False)
    variances = singular**2 / (len(features) - 1)
    kept = int(np.searchsorted(np.cumsum(variances) / variances.sum(), EXPLAINED)) + 1
    kept = min(kept, len(variances) - 1)
    return SubspaceModel(window_s, len(features), mean, scale, directions[:kept], q_limit(variances[kept:]))


def q_limit(rest: Floats) -> float:
    """The length of a residual that is passed with a probability of 0.001, from the variances outside of the subspace."""
    first, second, third = (float((rest**power).sum()) for power in (1, 2, 3))
    if first <= 0:
        return 1e-6
    h = 1 - 2 * first * third / (3 * second**2)
    inside = DEVIATE * np.sqrt(2 * second * h**2) / first + 1 + second * h * (h - 1) / first**2
    return float(np.sqrt(first * inside ** (1 / h)))


def read_model(path: str) -> SubspaceModel:
    """From a file that `elastream learn` wrote."""
    fix = "; write one with elastream learn ddos"
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"model {path}: cannot be read: {error.strerror}{fix}") from None
    where = f"model {path}: not a model"
    document = decode(text, dict[str, Any], where, error=SettingError, fix=fix)
    if document.get("version", VERSION) != VERSION:
        raise SettingError(f"{where}: made by another version: {document['version']}{fix}")
    file = convert(document, ModelFile, where, error=SettingError, fix=fix)
    if file.features != tuple(FEATURES):
        raise SettingError(f"{where}: expected the features {', '.join(FEATURES)}{fix}")
    count = len(FEATURES)
    if any(len(row) != count for row in (file.mean, file.scale, *file.components)):
        raise SettingError(f"{where}: expected {count} numbers in mean, scale and each of the components{fix}")
    mean, scale = np.array(file.mean), np.array(file.scale)
    components = np.array(file.components, np.float64).reshape(-1, count)
    if not (file.limit > 0 and file.window_s > 0 and np.all(np.isfinite(mean)) and np.all(scale > 0)):
        raise SettingError(f"{where}: limit, window_s and all of scale must be more than 0{fix}")
    return SubspaceModel(file.window_s, file.windows, mean, scale, components, file.limit)
