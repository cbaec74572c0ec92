"""The surrogate model: a Gaussian process with a Matérn kernel over sizes, by scikit-learn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from elastream.policies.autrascale.models import Sizes

Floats = npt.NDArray[np.float64]

SMOOTHNESS = 2.5
LENGTHS = (0.1, 10.0)
"""How far a size reaches, in parts of the space; each operator has its own."""
NOISE = 1e-3
"""Of a measurement, in parts of the variance of all."""


class Surrogate:
    """Trained on sizes and their scores. Sizes are seen relative to the space from `base` to `most`."""

    def __init__(self, base: Sizes, most: Sizes, sizes: Sequence[Sizes], scores: Sequence[float]) -> None:
        # Loading it takes a second, and only this policy needs it.
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import Matern

        self._base = np.asarray(base, np.float64)
        self._width = np.maximum(1.0, np.asarray(most, np.float64) - self._base)
        places, values = self._scaled(sizes), np.asarray(scores, np.float64)

        def fitted(lengths: Floats) -> Any:
            kernel = Matern(length_scale=lengths, length_scale_bounds=LENGTHS, nu=SMOOTHNESS)
            made = GaussianProcessRegressor(kernel=kernel, alpha=NOISE, optimizer=None, normalize_y=True)
            return made.fit(places, values)

        first = fitted(np.ones(len(base)))

        def unlikely(theta: Floats) -> tuple[float, Floats]:
            likely, slope = first.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
            return -likely, -slope

        # scikit-learn's own optimiser warns of every length at a bound, which an operator without influence always has.
        best = minimize(unlikely, first.kernel_.theta, jac=True, method="L-BFGS-B", bounds=first.kernel_.bounds)
        self._process = fitted(np.exp(best.x))

    def predict(self, sizes: Sequence[Sizes]) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the score of each."""
        mean, deviation = self._process.predict(self._scaled(sizes), return_std=True)
        return np.asarray(mean), np.asarray(deviation)

    def _scaled(self, sizes: Sequence[Sizes]) -> Floats:
        return (np.asarray(sizes, np.float64) - self._base) / self._width
