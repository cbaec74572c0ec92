"""The next sizes to run (Algorithms 1 and 2): a function of what was measured so far, with its reason."""

from collections.abc import Set
from dataclasses import dataclass
from math import isinf

import numpy as np

from elastream.policies.autrascale.bootstrap import bootstrap_sizes
from elastream.policies.autrascale.improvement import most_promising
from elastream.policies.autrascale.models import BenefitModel, Sample, Sizes
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.surrogate import Surrogate
from elastream.policies.autrascale.transfer import Scored, with_estimates

INFORMED = 3
"""A model with fewer samples has nothing to pass on."""
HOPELESS = 1e-6
"""No search goes on for so small an improvement."""


@dataclass(frozen=True)
class Trial:
    """Sizes to run, and why these."""

    sizes: Sizes
    reason: str


@dataclass(frozen=True)
class Search:
    """How a space is searched: what is sought, how boldly, and from how many first samples."""

    goal: Goal
    xi: float = 0.01
    alike: int = 6
    """First samples with one size for all operators (M)."""
    seed: int = 0

    def next(self, model: BenefitModel, old: BenefitModel | None, refused: Set[Sizes] = frozenset()) -> Trial | None:
        """None when nothing promises more. `refused`: sizes that could not be had."""
        tried = {sample.sizes for sample in model.samples} | refused
        first = bootstrap_sizes(model.base, model.most, self.alike)
        real = self.scored(model)
        if old is None or len(old.samples) < INFORMED or not real:
            for number, sizes in enumerate(first, 1):
                if sizes not in tried:
                    return Trial(sizes, f"first sample {number} of {len(first)}")
            data, by = real, f"{len(real)} samples"
        elif len(real) <= len(first):
            # Until there are more real samples than first ones would be (Num), estimates stand for these.
            data = with_estimates(self.surrogate(old), real, first, model.base, model.most)
            by = f"{len(real)} samples and the model of {old.per_second:.4g}/s"
        else:
            data, by = real, f"{len(real)} samples"
        if not data:
            return None
        process = Surrogate(model.base, model.most, [sizes for sizes, _ in data], [score for _, score in data])
        best = max(score for _, score in real)
        random = np.random.default_rng((self.seed, len(tried)))
        promise = most_promising(process, model.base, model.most, tried, best, self.xi, random)
        if promise is None or promise.improvement < HOPELESS:
            return None
        return Trial(
            promise.sizes,
            f"by {by} its score is {promise.mean:.3f} ± {promise.deviation:.3f}, "
            f"expected improvement {promise.improvement:.2g}",
        )

    def best(self, model: BenefitModel) -> Sample:
        """Those that keep the latency first, then by score; where queues only grow, by throughput."""

        def rank(sample: Sample) -> tuple[bool, bool, float]:
            stands = not isinf(sample.latency_s)
            value = self.score(model, sample) if stands else sample.per_second
            return sample.latency_s <= self.goal.latency_s, stands, value

        return max(model.samples, key=rank)

    def score(self, model: BenefitModel, sample: Sample) -> float:
        return self.goal.score(sample.latency_s, sample.sizes, model.base)

    def scored(self, model: BenefitModel) -> list[Scored]:
        return [(sample.sizes, self.score(model, sample)) for sample in model.samples]

    def surrogate(self, model: BenefitModel) -> Surrogate:
        scored = self.scored(model)
        return Surrogate(model.base, model.most, [sizes for sizes, _ in scored], [score for _, score in scored])
