"""Transfer (Algorithm 2): latencies of the first samples at a new rate, estimated by the model of another rate.

Sizes of two rates are compared by replicas per input: twice the replicas are as busy at twice the rate. As printed, the algorithm
compares equal sizes, and takes those that are idle at a low rate for good at a high one.
"""

from collections.abc import Sequence

import numpy as np

from elastream.policies.autrascale.models import BenefitModel, Sizes
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.score_model import Late, lateness
from elastream.policies.autrascale.surrogate import Surrogate


def with_estimates(goal: Goal, old: BenefitModel, model: BenefitModel, wanted: Sequence[Sizes]) -> list[Late]:
    """The real samples, and an estimate for each of the wanted sizes that was not measured.

    One process has learned the latencies of the old rate, a second learns by how much it is wrong at the real samples; an
    estimate is the sum of the two.
    """
    real = lateness(goal, model)
    measured = [sizes for sizes, _ in real]
    missing = [sizes for sizes in wanted if sizes not in measured]
    if not missing or not real:
        return real
    known = lateness(goal, old)
    before = Surrogate(old.base, old.most, [sizes for sizes, _ in known], [late for _, late in known])
    as_busy = old.per_second / model.per_second
    expected, _ = before.predict(np.asarray(measured) * as_busy)
    residuals = [late - then for (_, late), then in zip(real, expected.tolist(), strict=True)]
    wrong, _ = Surrogate(model.base, model.most, measured, residuals).predict(missing)
    estimates = before.predict(np.asarray(missing) * as_busy)[0] + wrong
    return [*real, *zip(missing, estimates.tolist(), strict=True)]
