"""The benefit model of an application at one input rate: which sizes were measured, and how they did."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log

Sizes = tuple[int, ...]
"""Replicas of every operator, in topological order."""


@dataclass(frozen=True)
class Sample:
    """Sizes that ran until their queues were stable."""

    sizes: Sizes
    latency_s: float
    """Mean from source to end; infinite where queues only grew."""
    per_second: float
    """Throughput, in tuples of the input."""


@dataclass(frozen=True)
class BenefitModel:
    """Measurements, not scores: they hold for every target, and a Gaussian process is trained on them in milliseconds."""

    operators: tuple[str, ...]
    per_second: float
    """The input rate at which it was learned."""
    base: Sizes
    """The smallest sizes that serve this rate."""
    most: Sizes
    samples: tuple[Sample, ...] = ()

    def with_sample(self, sample: Sample) -> "BenefitModel":
        """A newer measurement of the same sizes takes the place of the older."""
        kept = tuple(known for known in self.samples if known.sizes != sample.sizes)
        return replace(self, samples=(*kept, sample))


def nearest(models: Iterable[BenefitModel], per_second: float) -> BenefitModel | None:
    """The model whose rate is closest: twice as much is as far as half as much."""
    usable = [model for model in models if model.samples and model.per_second > 0]
    if not usable or per_second <= 0:
        return None
    return min(usable, key=lambda model: (distance(model.per_second, per_second), model.per_second))


def distance(one_per_s: float, other_per_s: float) -> float:
    """How far two rates are apart: 0.1 is about ten per cent."""
    return abs(log(one_per_s / other_per_s))
