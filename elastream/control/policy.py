"""The base class of policies: one method to write, and the hooks that a policy may add.

A policy has no clock, does no I/O and knows no Spark. So the same object decides for a run, a simulation and a journal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from elastream.control.observation import Observation
from elastream.control.plant import Plant
from elastream.control.proposal import Proposal
from elastream.workload import Arrivals


class Policy(ABC):
    """Decides sizes: `propose(observation) -> Proposal`. The same observations must give the same proposals.

    Only `propose` is required. Everything else is a hook with a default. Set an attribute in the class or in `__init__`,
    or override a method:

    name      how journals and reports call the policy; by default the name of its class
    start     replicas that every operator of a new run begins with; None: as the topology says
    every_s   the policy's own pace: seconds between two decisions, used unless the user sets `td_s`; None: no own pace
    targets   parameters of `__init__` that are the user's targets: any of "latency_s", "latency_ms" and "per_second".
              `run(latency_ms=300)` and `--latency-ms 300` then reach the parameter, in its own unit
    foresee   is given all arrivals to come, before the run; only replays and simulations know them
    models    what the policy has learned and wants to keep for later runs; None: nothing
    recall    is given the models of earlier runs, before the first interval
    wrap      returns the plant that decisions are applied to, for systems that pause or lose tuples to change their size
    """

    name: str = ""
    start: int | None = None
    every_s: float | None = None
    targets: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.name in ("", *(base.__name__ for base in cls.__mro__[1:])):
            cls.name = cls.__name__

    @abstractmethod
    def propose(self, observation: Observation) -> Proposal:
        """The sizes that this policy wants after an interval; operators that it does not name stay as they are."""

    def foresee(self, arrivals: tuple[Arrivals, ...]) -> None:
        """Take the arrivals that will come, one per source. Called once, before the first interval."""
        return

    @property
    def models(self) -> tuple[Any, ...] | None:
        """Models to keep for later runs, `policies.autrascale.BenefitModel` each; None: this policy learns none."""
        return None

    def wrap(self, plant: Plant) -> Plant:
        """The plant that this policy observes and changes. Called once, with the engine's or the simulator's own."""
        return plant

    def recall(self, models: Iterable[Any]) -> None:
        """Take the models of earlier runs of the same application. Called before the first interval."""
        return
