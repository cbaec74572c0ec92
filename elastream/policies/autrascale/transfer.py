"""Transfer (Algorithm 2): scores of the first samples at a new rate, estimated by the model of another rate."""

from collections.abc import Sequence

from elastream.policies.autrascale.models import Sizes
from elastream.policies.autrascale.surrogate import Surrogate

Scored = tuple[Sizes, float]


def with_estimates(
    old: Surrogate, real: Sequence[Scored], wanted: Sequence[Sizes], base: Sizes, most: Sizes
) -> list[Scored]:
    """The real samples, and an estimate for each of the wanted sizes that was not measured.

    A second process learns by how much the old model is wrong at the real samples; an estimate is the sum of the two.
    """
    measured = [sizes for sizes, _ in real]
    missing = [sizes for sizes in wanted if sizes not in measured]
    if not missing or not real:
        return list(real)
    expected, _ = old.predict(measured)
    residuals = [score - before for (_, score), before in zip(real, expected.tolist(), strict=True)]
    correction, _ = Surrogate(base, most, measured, residuals).predict(missing)
    estimates = old.predict(missing)[0] + correction
    return [*real, *zip(missing, estimates.tolist(), strict=True)]
