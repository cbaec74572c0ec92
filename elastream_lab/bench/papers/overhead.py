"""How long AuTraScale computes (the paper's table IV): training, one recommendation, and one by transfer."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from elastream.policies.autrascale.bootstrap import bootstrap_sizes
from elastream.policies.autrascale.improvement import most_promising
from elastream.policies.autrascale.models import BenefitModel, Sample, Sizes
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.score_model import ScoreModel, lateness
from elastream.policies.autrascale.transfer import with_estimates
from elastream_lab.bench.common.tables import table

PAPER_S = {
    2: (0.042, 0.0008, 0.070),
    4: (0.053, 0.0006, 0.081),
    6: (0.065, 0.0006, 0.094),
    8: (0.076, 0.0006, 0.104),
    10: (0.088, 0.0006, 0.116),
}
"""Operators -> training, use, transfer."""

MOST, ALIKE, TIMES = 40, 6, 9
LATENCY_S, PER_S = 0.3, 1000.0


@dataclass(frozen=True)
class Overhead:
    """Processor seconds of the thread that decides, the median of some times."""

    operators: int
    train_s: float
    """Train the model on the first samples."""
    use_s: float
    """Find the sizes with the largest expected improvement."""
    transfer_s: float
    """Estimate the first samples by another rate's model, and train on them."""


def bench_overhead() -> list[Overhead]:
    return [_measure(operators) for operators in PAPER_S]


def overhead_table(found: list[Overhead]) -> str:
    rows = []
    for its in found:
        mine = (its.train_s, its.use_s, its.transfer_s)
        pairs = zip(mine, PAPER_S[its.operators], strict=True)
        rows.append([str(its.operators), *(f"{ours * 1e3:.1f} ({paper * 1e3:g})" for ours, paper in pairs)])
    return table(["operators", "train ms (paper)", "use ms (paper)", "transfer ms (paper)"], rows)


def _measure(operators: int) -> Overhead:
    base, most = (4,) * operators, (MOST,) * operators
    goal, first = Goal(LATENCY_S), bootstrap_sizes(base, most, ALIKE)
    names = tuple(f"op{number}" for number in range(operators))
    old = BenefitModel(
        names, PER_S, base, most, tuple(Sample(sizes, _latency_s(sizes, base), PER_S) for sizes in first)
    )
    new = replace(old, per_second=1.2 * PER_S, samples=old.samples[:2])
    known, tried = lateness(goal, old), set(first)
    model, random = ScoreModel(goal, base, most, known), np.random.default_rng(0)
    highest = max(goal.score(sample.latency_s, sample.sizes, base) for sample in old.samples)

    def train() -> None:
        ScoreModel(goal, base, most, known)

    def use() -> None:
        most_promising(model, base, most, tried, first[0], highest, 0.01, random)

    def transfer() -> None:
        ScoreModel(goal, base, most, with_estimates(goal, old, new, first))

    return Overhead(operators, _seconds(train), _seconds(use), _seconds(transfer))


def _latency_s(sizes: Sizes, base: Sizes) -> float:
    """Of a pipeline whose latency falls with every replica, and rises where there are many."""
    return 0.05 * sum(least / size for least, size in zip(base, sizes, strict=True)) + 1e-4 * sum(sizes)


def _seconds(work: Callable[[], None]) -> float:
    took = []
    for _ in range(TIMES):
        began = time.thread_time()
        work()
        took.append(time.thread_time() - began)
    return median(took)
