"""AuTraScale (Zhang, Zheng, Li, Shen, Guo, IPDPS 2021): Bayesian optimisation of latency and replicas at each input rate.

First the smallest sizes that serve the rate, by true rates. Where they miss the latency target, a Gaussian process learns the
benefit of larger ones from few measurements, and the search stops at the first that is good enough. When the rate changes,
the model of the nearest rate stands in for measurements that were not made yet.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import inf, isinf

from elastream.control import Observation, Policy, Proposal, SearchStep, Want
from elastream.errors import SettingError
from elastream.policies.autrascale.backlog import Backlog
from elastream.policies.autrascale.base_search import BaseSearch, Ran
from elastream.policies.autrascale.models import BenefitModel, Sample, Sizes, distance, nearest
from elastream.policies.autrascale.rate_watch import SAME, RateWatch
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.search import INFORMED, Search, Stop, Trial
from elastream.policies.autrascale.settling import Queues, Settling, Verdict
from elastream.policies.autrascale.sight import Eyes, Sight

STUCK = 2
"""Intervals in which sizes do not move towards those that are wanted: guards do not allow them."""
MISSED = 2
"""Measurements in a row that miss the goal before sizes that once reached it are given up."""
QUIET = 2
"""Intervals without input after which everything shrinks."""
MOST_MODELS = 64
RESERVE = 1.25
"""Behind the base the fewest sizes that serve so many times the rate are tried, before first samples that cost far more."""


class AuTraScale(Policy):
    """Keeps a mean latency with few replicas. Models of earlier runs may be given to it, and its own be taken from it."""

    targets = ("latency_ms", "per_second")

    def __init__(
        self,
        latency_ms: float = 300.0,
        per_second: float = 0.0,
        alpha: float = 0.8,
        w: float = 1.0,
        xi: float = 0.01,
        alike: int = 6,
        samples: int = 40,
        seed: int = 0,
        plain: int = 0,
    ) -> None:
        """`per_second`: the input rate to be ready for; 0 means the one that is seen. `samples`: measured per rate at most.

        `plain=1`: as in the paper, which serves no backlog first and tries nothing between the base and its first samples.
        """
        if not 0 <= per_second < inf:
            raise SettingError(f"policy 'autrascale': per_second must be 0 or more, got {per_second:g}; 0: as it comes")
        if not 0 <= xi < inf:
            raise SettingError(f"policy 'autrascale': xi must be 0 or more, got {xi:g}")
        if alike < 2 or samples < 1 or seed < 0:
            raise SettingError(
                f"policy 'autrascale': alike from 2, samples from 1 and seed from 0, got {alike}, {samples} and {seed}"
            )
        if plain not in (0, 1):
            raise SettingError(f"policy 'autrascale': plain must be 0 or 1 (as in the paper), got {plain}")
        self.name = f"autrascale:latency_ms={latency_ms:g}" + (",plain=1" if plain else "")
        self._search = Search(Goal(latency_ms / 1e3, alpha, w), xi, alike, seed)
        self._samples = samples
        self._eyes = Eyes()
        self._rate = RateWatch(per_second)
        self._settling = Settling(latency_ms / 1e3)
        self._backlog = Backlog(latency_ms / 1e3)
        self._plain = plain
        self._models: dict[float, BenefitModel] = {}
        self._model: BenefitModel | None = None
        self._old: BenefitModel | None = None
        self._base_search: BaseSearch | None = None
        self._early: list[Sample] = []
        """Measured before the base was known."""
        self._target: Sizes = ()
        self._trial: Trial | None = None
        """The sizes that run because a model promised something of them."""
        self._step: SearchStep | None = None
        self._reason = ""
        self._sizes: Sizes = ()
        self._refused: set[Sizes] = set()
        self._stuck = self._missed = self._quiet = self._base_runs = 0
        self._done = self._tried_all = self._reserved = False

    @property
    def models(self) -> tuple[BenefitModel, ...]:
        """A model per input rate, with everything that was measured so far."""
        return tuple(self._models.values())

    def recall(self, models: Iterable[BenefitModel]) -> None:
        """Begin with models of earlier runs. Whoever runs this policy gives them to it before the first interval."""
        self._models.update({model.per_second: model for model in models})

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds or not any(observation.scalable()):
            return Proposal()
        sight = self._eyes.see(observation)
        if sight.sizes != self._sizes:
            self._settling.begin()
        moved, self._sizes = sight.sizes != self._sizes, sight.sizes
        verdict = self._settling.look(sight.interval)
        self._quiet = 0 if sight.interval.per_second or sight.interval.queued else self._quiet + 1
        if self._quiet >= QUIET:
            return self._wants(sight, sight.least, "nothing arrives")
        if self._rate.look(sight.interval.per_second, verdict.queues is Queues.GROWING):
            self._settling.begin()
            self._begin(sight)
        elif not self._target:
            return Proposal()
        elif extra_per_s := self._backlog.to_serve(
            sight.interval.queued, self._rate.per_second, sight.interval.seconds, arrived=sight.sizes == self._target
        ):
            return self._drain(sight, extra_per_s)
        elif sight.sizes != self._target and not self._is_refused(sight, moved):
            pass
        elif self._base_search is not None:
            self._seek_base(sight, verdict, self._base_search)
        elif verdict.latency_s is not None and self._model is not None:
            self._measured(sight, verdict.latency_s, self._model)
        return self._wants(sight, self._target, self._reason)

    def _begin(self, sight: Sight) -> None:
        """Another input rate: go to what is known of it, or find its base first."""
        rate = self._rate.per_second
        ours = [model for model in self._models.values() if model.operators == sight.operators]
        known = nearest(ours, rate)
        self._refused, self._early = set(), []
        self._stuck = self._missed = self._base_runs = 0
        self._done = self._tried_all = self._reserved = False
        self._base_search = self._model = None
        self._old = nearest([model for model in ours if len(model.samples) >= INFORMED], rate)
        if known is not None and distance(known.per_second, rate) <= SAME:
            self._model = replace(known, most=sight.most)
            best = self._search.best(known)
            self._aim(best.sizes, f"{rate:.4g}/s is known from {len(known.samples)} samples: best are {_of(best)}")
            return
        recommended = self._eyes.recommended(sight, rate)
        self._base_search = BaseSearch(recommended)
        self._aim(recommended, f"by true rates the fewest that serve {rate:.4g}/s")

    def _seek_base(self, sight: Sight, verdict: Verdict, search: BaseSearch) -> None:
        if verdict.latency_s is None and verdict.queues is not Queues.SHRINKING:
            return
        rate = self._rate.per_second
        recommended = self._eyes.recommended(sight, rate)
        stands = verdict.latency_s is None or not isinf(verdict.latency_s)
        # With a rate to be ready for, keeping up with less says nothing.
        ready = sight.interval.per_second >= rate * (1 - SAME) or _covers(sight.sizes, recommended)
        following = search.next(Ran(sight.sizes, sight.throughput_per_s, stands and ready), recommended)
        if verdict.latency_s is not None:
            self._early.append(Sample(sight.sizes, verdict.latency_s, sight.throughput_per_s))
        if following is not None:
            self._aim(
                following, f"at {_words(sight.sizes)} true rates are others: now the fewest that serve {rate:.4g}/s"
            )
            return
        base = search.base()
        self._base_search, self._base_runs = None, search.runs
        model = self._model = BenefitModel(sight.operators, rate, base, sight.most)
        for sample in self._early:
            if _covers(sample.sizes, base) and sample.sizes != sight.sizes:
                model = self._learn(model.with_sample(sample))
        self._aim(base, f"base {_words(base)} serves {rate:.4g}/s; its latency is measured")
        if base == sight.sizes and verdict.latency_s is not None:
            self._measured(sight, verdict.latency_s, model)

    def _measured(self, sight: Sight, latency_s: float, model: BenefitModel) -> None:
        """The sizes that run have shown their latency: stop here, go on, or stay."""
        goal, sample = self._search.goal, Sample(sight.sizes, latency_s, sight.throughput_per_s)
        reached = goal.reached(latency_s, sample.sizes, model.base)
        if self._tried_all:
            return
        if self._done:
            kept = latency_s <= goal.latency_s
            self._missed = 0 if kept else self._missed + 1
            if self._missed < MISSED:
                return
        model = self._learn(model.with_sample(sample))
        score = self._search.score(model, sample)
        tried = (
            f"{_of(sample)} with a score of {score:.3f}, {goal.enough:.3f} and {goal.latency_s * 1e3:.0f} ms are enough"
        )
        self._done, self._missed = reached, 0
        if reached:
            self._note(model, sample, sample.sizes, "the target is kept, and the score is enough")
            self._aim(sample.sizes, f"{tried}; {len(model.samples)} samples")
            return
        following: Trial | Stop = Stop(f"{self._samples} samples are the most")
        if len(model.samples) + len(self._refused) < self._samples:
            following = self._next(sight, model)
        best = self._search.best(model)
        if isinstance(following, Stop):
            self._done = True
            # Sizes that keep the target are watched: when they miss it, the search goes on.
            self._tried_all = best.latency_s > goal.latency_s or len(model.samples) >= self._samples
            self._note(model, sample, best.sizes, following.reason)
            self._aim(
                best.sizes,
                f"tried {tried}; {following.reason}; best of {len(model.samples)} samples are {_of(best)}",
            )
            return
        self._note(model, sample, following.sizes, following.reason)
        so_far = "" if best == sample else f"; best so far {_of(best)}"
        self._aim(following.sizes, f"tried {tried}{so_far}; next {_words(following.sizes)}: {following.reason}")
        self._trial = following

    def _next(self, sight: Sight, model: BenefitModel) -> Trial | Stop:
        if not (self._plain or self._reserved or self._old):
            self._reserved = True
            sizes = tuple(map(max, model.base, self._eyes.recommended(sight, model.per_second * RESERVE)))
            if sizes not in self._refused | {sample.sizes for sample in model.samples}:
                return Trial(sizes, f"the fewest that serve {RESERVE:g} times the rate")
        return self._search.next(model, self._old, self._refused)

    def _drain(self, sight: Sight, extra_per_s: float) -> Proposal:
        """More than the sizes that are to be measured, until what waited before them is served."""
        self._stuck = 0
        larger = self._eyes.recommended(sight, self._rate.per_second + extra_per_s)
        sizes = tuple(map(max, larger, self._target))
        waits = f"{sight.interval.queued} tuples wait from before; they are served first"
        return self._wants(sight, sizes, f"{waits}, then {_words(self._target)}: {self._reason}")

    def _note(self, model: BenefitModel, sample: Sample, following: Sizes, why: str) -> None:
        """The step of the search that is told with the next proposal."""
        search, best, trial = self._search, self._search.best(model), self._trial
        foreseen = trial if trial is not None and trial.sizes == sample.sizes else None
        self._step = SearchStep(
            model.operators,
            model.per_second,
            search.goal.latency_s * 1e3,
            search.goal.enough,
            model.base,
            self._base_runs,
            len(model.samples),
            sample.sizes,
            search.score(model, sample),
            _ms(sample),
            foreseen.expected if foreseen else None,
            foreseen.deviation if foreseen else None,
            best.sizes,
            search.score(model, best),
            _ms(best),
            following,
            why,
            self._done,
        )

    def _is_refused(self, sight: Sight, moved: bool) -> bool:
        """Sizes that guards do not allow are given up, and what is there is measured instead."""
        self._stuck = 0 if moved else self._stuck + 1
        if self._stuck <= STUCK:
            return False
        self._refused.add(self._target)
        self._aim(
            sight.sizes, f"guards do not allow {_words(self._target)}; {_words(sight.sizes)} are measured instead"
        )
        return True

    def _learn(self, model: BenefitModel) -> BenefitModel:
        self._model = self._models[model.per_second] = model
        if len(self._models) > MOST_MODELS:
            poorest = min(self._models.values(), key=lambda m: (m is model, len(m.samples)))
            del self._models[poorest.per_second]
        return model

    def _aim(self, sizes: Sizes, reason: str) -> None:
        if sizes != self._target and not self._plain:
            self._backlog.begin()
        self._target, self._reason, self._stuck, self._trial = sizes, reason, 0, None

    def _wants(self, sight: Sight, sizes: Sizes, reason: str) -> Proposal:
        wants = tuple(Want(name, size, reason) for name, size in zip(sight.operators, sizes, strict=True))
        step, self._step = self._step, None
        return Proposal(wants, search=step)


def _covers(sizes: Sizes, base: Sizes) -> bool:
    return all(size >= least for size, least in zip(sizes, base, strict=True))


def _words(sizes: Sizes) -> str:
    return f"({', '.join(map(str, sizes))})"


def _ms(sample: Sample) -> float | None:
    return None if isinf(sample.latency_s) else sample.latency_s * 1e3


def _of(sample: Sample) -> str:
    """Sizes and their latency, for reasons."""
    took = "a latency that only grows" if isinf(sample.latency_s) else f"{sample.latency_s * 1e3:.0f} ms"
    return f"{_words(sample.sizes)}: {took}"
