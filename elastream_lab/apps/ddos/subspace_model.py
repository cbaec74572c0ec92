"""The subspace method: features of normal times enter, a model leaves that tells how far others are from normal.

Principal components span what is normal: how a network's numbers go up and down together. What is left of a vector outside of that
subspace is small in normal times. The square of its length is compared with the Q-statistic of Jackson and Mudholkar (1979), the
value that it passes in normal times with a small probability; Lakhina and others (SIGCOMM 2004) find anomalies of traffic so.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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

    def to_json(self) -> str:
        numbers = {name: getattr(self, name).tolist() for name in ("mean", "scale", "components")}
        document = {"version": VERSION, "features": FEATURES, "window_s": self.window_s, "windows": self.windows}
        return json.dumps({**document, "limit": self.limit, **numbers}, indent=1) + "\n"


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
    try:
        document: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["version"] != VERSION or document["features"] != list(FEATURES):
            raise ValueError(f"made by another version: {document['version']}")
        mean, scale, components = (np.array(document[name], np.float64) for name in ("mean", "scale", "components"))
        count = len(FEATURES)
        if mean.shape != (count,) or scale.shape != (count,) or components.ndim != 2 or components.shape[1] != count:
            raise ValueError(f"expected {count} numbers in mean, scale and each of the components")
        limit, window_s, windows = float(document["limit"]), int(document["window_s"]), int(document["windows"])
        if not (limit > 0 and window_s > 0 and np.all(np.isfinite(mean)) and np.all(scale > 0)):
            raise ValueError("limit, window_s and all of scale must be more than 0")
    except OSError as error:
        raise SettingError(
            f"model {path}: cannot be read: {error.strerror}; write one with elastream learn ddos"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingError(f"model {path}: not a model: {error}; write one with elastream learn ddos") from None
    return SubspaceModel(window_s, windows, mean, scale, components, limit)
