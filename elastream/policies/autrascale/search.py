"""The next sizes to run (Algorithms 1 and 2): a function of what was measured so far, with its reason."""

from collections.abc import Set
from dataclasses import dataclass
from math import isinf

import numpy as np

from elastream.policies.autrascale.base_search import AS_MUCH
from elastream.policies.autrascale.bootstrap import bootstrap_sizes
from elastream.policies.autrascale.candidates import drawn, everywhere, is_small, lines
from elastream.policies.autrascale.improvement import most_promising
from elastream.policies.autrascale.models import BenefitModel, Sample, Sizes
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.score_model import ScoreModel, lateness
from elastream.policies.autrascale.transfer import with_estimates

INFORMED = 3
"""A model with fewer samples has nothing to pass on."""
HOPELESS = 1e-3
"""No search goes on for so small an expected improvement once the target is kept."""
UNLIKELY = 0.02
"""A target that no sizes keep with a larger probability than this is given up."""


@dataclass(frozen=True)
class Trial:
    """Sizes to run, and why these."""

    sizes: Sizes
    reason: str
    expected: float | None = None
    """The score that the model expects."""
    deviation: float | None = None


@dataclass(frozen=True)
class Stop:
    """The end of a search that has not reached its goal, and why it ends."""

    reason: str


@dataclass(frozen=True)
class Search:
    """How a space is searched: what is sought, how boldly, and from how many first samples."""

    goal: Goal
    xi: float = 0.01
    alike: int = 6
    """First samples with one size for all operators (M)."""
    seed: int = 0

    def next(self, model: BenefitModel, old: BenefitModel | None, refused: Set[Sizes] = frozenset()) -> Trial | Stop:
        """From what was measured. `refused`: sizes that could not be had."""
        tried = {sample.sizes for sample in model.samples} | refused
        first = bootstrap_sizes(model.base, model.most, self.alike)
        data, by = lateness(self.goal, model), f"{len(model.samples)} samples"
        if not data:
            return Stop("nothing was measured")
        if old is None or len(old.samples) < INFORMED:
            for number, sizes in enumerate(first, 1):
                if sizes not in tried:
                    return Trial(sizes, f"first sample {number} of {len(first)}")
        elif len(data) <= len(first):
            # Until there are more real samples than first ones would be (Num), estimates stand for these.
            data = with_estimates(self.goal, old, model, first)
            by += f" and the model of {old.per_second:.4g}/s"
        scores = ScoreModel(self.goal, model.base, model.most, data)
        best = self.best(model)
        random = np.random.default_rng((self.seed, len(tried)))
        kept = best.latency_s <= self.goal.latency_s
        if not kept and len(model.samples) >= self.alike:
            likely = _likeliest(scores, model, best.sizes, random)
            said = f"by {by} no sizes keep {self.goal.latency_s * 1e3:.0f} ms with a probability above {likely:.1%}"
            if likely < UNLIKELY and model.most in tried:
                return Stop(f"the target cannot be kept: {said}")
            if likely < UNLIKELY:
                return Trial(model.most, f"{said}; the most that may be had decides")
        highest = max(self.score(model, sample) for sample in model.samples)
        promise = most_promising(scores, model.base, model.most, tried, best.sizes, highest, self.xi, random)
        if promise is None:
            return Stop("all sizes were tried")
        if kept and promise.improvement < HOPELESS:
            return Stop(f"nothing promises more than {promise.improvement:.2g}")
        reason = (
            f"by {by} its score is {promise.mean:.3f} ± {promise.deviation:.3f}, "
            f"expected improvement {promise.improvement:.2g}"
        )
        return Trial(promise.sizes, reason, promise.mean, promise.deviation)

    def best(self, model: BenefitModel) -> Sample:
        """Those that keep the latency first, then by score; where all queues only grow, the leanest with the largest throughput."""
        largest = max(sample.per_second for sample in model.samples)

        def rank(sample: Sample) -> tuple[bool, bool, bool, float]:
            stands = not isinf(sample.latency_s)
            as_much = stands or sample.per_second >= AS_MUCH * largest
            return sample.latency_s <= self.goal.latency_s, stands, as_much, self.score(model, sample)

        return max(model.samples, key=rank)

    def score(self, model: BenefitModel, sample: Sample) -> float:
        return self.goal.score(sample.latency_s, sample.sizes, model.base)


def _likeliest(scores: ScoreModel, model: BenefitModel, around: Sizes, random: np.random.Generator) -> float:
    """The largest probability with which any sizes keep the target, as far as they are looked at."""
    if is_small(model.base, model.most):
        return float(scores.keeps(everywhere(model.base, model.most)).max())
    rows = [drawn(model.base, model.most, random), lines(around, model.base, model.most)]
    return float(scores.keeps(np.concatenate(rows)).max())
