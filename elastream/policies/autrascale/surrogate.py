"""The surrogate model: a Gaussian process with a Matérn kernel over sizes, trained by scikit-learn, asked in numpy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from elastream.policies.autrascale.candidates import Rows
from elastream.policies.autrascale.models import Sizes

Floats = npt.NDArray[np.float64]

SMOOTHNESS = 2.5
LENGTHS = (0.1, 10.0)
"""How far a size reaches, in parts of the space; each operator has its own."""
NOISE = 0.02
"""Of a measurement, in parts of the variance of all."""


class Surrogate:
    """Trained on sizes and a value of each, which it sees by how busy they make replicas: 0 is the `base`, 1 the `most`.

    From 3 to 4 replicas is further than from 30 to 40.
    """

    def __init__(self, base: Sizes, most: Sizes, sizes: Sequence[Sizes], values: Sequence[float]) -> None:
        # Loading it takes a second, and only this policy needs it.
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import Matern

        self._base = np.asarray(base, np.float64)
        width = 1.0 - self._base / np.asarray(most, np.float64)
        self._width = np.where(width > 0, width, 1.0)
        seen = np.asarray(values, np.float64)
        self._mean, self._scale = float(seen.mean()), float(seen.std()) or 1.0
        places, normal = self._places(sizes), (seen - self._mean) / self._scale

        def fitted(lengths: Floats) -> Any:
            kernel = Matern(length_scale=lengths, length_scale_bounds=LENGTHS, nu=SMOOTHNESS)
            return GaussianProcessRegressor(kernel=kernel, alpha=NOISE, optimizer=None).fit(places, normal)

        first = fitted(np.ones(len(base)))

        def unlikely(theta: Floats) -> tuple[float, Floats]:
            likely, slope = first.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
            return -likely, -slope

        # scikit-learn's own optimiser warns of every length at a bound, which an operator without influence always has.
        best = minimize(unlikely, first.kernel_.theta, jac=True, method="L-BFGS-B", bounds=first.kernel_.bounds)
        self._lengths = np.exp(best.x)
        process = fitted(self._lengths)
        self._seen = places / self._lengths
        self._seen_squares = (self._seen**2).sum(axis=1)
        self._weights = process.alpha_
        self._inverse = solve_triangular(process.L_, np.eye(len(places)), lower=True)

    def predict(self, sizes: Sequence[Sizes] | Rows | Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the value of each. scikit-learn's own way takes some times as long: it is for any kernel."""
        asked = self._places(sizes) / self._lengths
        squares = (asked**2).sum(axis=1)[:, None] + self._seen_squares - 2.0 * (asked @ self._seen.T)
        # Matérn's kernel with a smoothness of 5/2.
        apart = np.sqrt(5.0 * np.maximum(squares, 0.0))
        alike = (1.0 + apart + apart * apart / 3.0) * np.exp(-apart)
        left = 1.0 - ((alike @ self._inverse.T) ** 2).sum(axis=1)
        return self._mean + self._scale * (alike @ self._weights), self._scale * np.sqrt(np.maximum(left, 0.0))

    def _places(self, sizes: Sequence[Sizes] | Rows | Floats) -> Floats:
        return (1.0 - self._base / np.asarray(sizes, np.float64)) / self._width
