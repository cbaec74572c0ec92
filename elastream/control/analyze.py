"""Analyze: ask the policy what it wants. Whatever a policy does, the stream goes on: this room makes sure of it."""

import math
import threading
from dataclasses import dataclass

from elastream.control.observation import Observation
from elastream.control.policy import Policy
from elastream.control.proposal import Home, LevelWant, Proposal, Want
from elastream.control.search_step import SearchStep
from elastream.fleet import Level

PATIENCE_S = 0.05
"""How long the stream waits for an answer; most take a thousandth of it. A later one is taken up at a later tick."""


@dataclass(frozen=True)
class Analysis:
    """What a policy made of an observation: a proposal that has been checked, or why there is none."""

    proposal: Proposal | None
    error: str | None = None


def analyze(policy: Policy, observation: Observation) -> Analysis:
    """Ask, and check the answer."""
    try:
        proposal = policy.propose(observation)
        nonsense = _nonsense(proposal, observation)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            # Somebody at the keyboard, and not the policy.
            raise
        return Analysis(None, f"policy {policy.name!r} raised {type(error).__name__}: {error}")
    return Analysis(None, f"policy {policy.name!r}: {nonsense}") if nonsense else Analysis(proposal)


def _nonsense(proposal: object, observation: Observation) -> str | None:
    """What is wrong with an answer, if anything is."""
    if not isinstance(proposal, Proposal) or not isinstance(proposal.wants, tuple):
        return f"expected a Proposal with a tuple of wants, got {type(proposal).__name__}"
    if not isinstance(proposal.search, SearchStep | None):
        return f"expected search to be a SearchStep or None, got {type(proposal.search).__name__}"
    known = {operator.operator for operator in observation.scalable()}
    seen: set[str] = set()
    for want in proposal.wants:
        if not isinstance(want, Want):
            return f"expected a Want, got {type(want).__name__}"
        if want.operator not in known:
            return f"no operator {want.operator!r} that can be rescaled; there are {', '.join(sorted(known))}"
        if want.operator in seen:
            return f"operator {want.operator!r} is named twice"
        if isinstance(want.replicas, bool) or not isinstance(want.replicas, int):
            return f"operator {want.operator!r}: expected a whole number of replicas, got {want.replicas!r}"
        if not isinstance(want.reason, str):
            return f"operator {want.operator!r}: expected a reason in words, got {want.reason!r}"
        if want.need is not None and not (type(want.need) in (int, float) and math.isfinite(want.need)):
            return f"operator {want.operator!r}: expected a need that is a number or None, got {want.need!r}"
        seen.add(want.operator)
    if not isinstance(proposal.alerts, tuple) or not all(isinstance(said, str) for said in proposal.alerts):
        return f"expected a tuple of alerts in words, got {proposal.alerts!r}"
    return _homeless(proposal, observation, known) or _uncounted(proposal)


def _homeless(proposal: Proposal, observation: Observation, operators: set[str]) -> str | None:
    """What is wrong with the homes that are asked for, if anything is."""
    if not isinstance(proposal.homes, tuple):
        return f"expected a tuple of homes, got {type(proposal.homes).__name__}"
    hosts = {host.host for host in observation.hosts}
    placed: set[tuple[str, int]] = set()
    for home in proposal.homes:
        if not isinstance(home, Home):
            return f"expected a Home, got {type(home).__name__}"
        if home.operator not in operators:
            return f"no operator {home.operator!r} with replicas; there are {', '.join(sorted(operators))}"
        if isinstance(home.lane, bool) or not isinstance(home.lane, int) or home.lane < 0:
            return f"operator {home.operator!r}: expected the number of a replica, got {home.lane!r}"
        if home.host not in hosts:
            return f"operator {home.operator!r}: no host {home.host!r}; there are {', '.join(map(str, sorted(hosts)))}"
        if not isinstance(home.reason, str):
            return f"operator {home.operator!r}: expected a reason in words, got {home.reason!r}"
        if (home.operator, home.lane) in placed:
            return f"replica {home.lane} of {home.operator!r} is given two homes"
        placed.add((home.operator, home.lane))
    return None


def _uncounted(proposal: Proposal) -> str | None:
    """What is wrong with the containers that are asked for, if anything is."""
    if not isinstance(proposal.levels, tuple):
        return f"expected a tuple of levels, got {type(proposal.levels).__name__}"
    seen: set[Level] = set()
    for want in proposal.levels:
        if not isinstance(want, LevelWant) or not isinstance(want.level, Level):
            return f"expected a LevelWant of a Level, got {want!r}"
        if isinstance(want.count, bool) or not isinstance(want.count, int):
            return f"{want.level.value}s: expected a whole number, got {want.count!r}"
        if not isinstance(want.reason, str):
            return f"{want.level.value}s: expected a reason in words, got {want.reason!r}"
        if want.level in seen:
            return f"{want.level.value}s are named twice"
        seen.add(want.level)
    return None


class Analyst:
    """Analyzes beside the stream, so that a policy that thinks for long, or for ever, holds nothing up."""

    def __init__(self, policy: Policy, limit_s: float, patience_s: float = PATIENCE_S) -> None:
        self._policy = policy
        self._limit_s = limit_s
        self._patience_s = patience_s
        self._question: Observation | None = None
        self._answer: Analysis | None = None
        self._done = threading.Event()
        self._asked_s = 0.0
        self._overdue = False

    def ask(self, observation: Observation, now_s: float) -> Analysis | None:
        """Begin; gives the answer when it comes at once, or why there will be none."""
        if self._question is not None and not self._done.is_set():
            for_s = now_s - self._asked_s
            return Analysis(None, f"policy {self._policy.name!r} has been thinking for {for_s:.1f} s; not asked again")
        if self._patience_s == math.inf:
            # In virtual time nobody waits.
            return analyze(self._policy, observation)
        self._question, self._answer, self._asked_s, self._overdue = observation, None, now_s, False
        self._done.clear()
        threading.Thread(target=self._think, args=(observation,), name="elastream-policy", daemon=True).start()
        self._done.wait(self._patience_s)
        return self.poll(now_s)

    def poll(self, now_s: float) -> Analysis | None:
        """The answer, once; or, once, that it is overdue. An answer that comes after that is too old to be used."""
        if self._question is None:
            return None
        if self._done.is_set():
            answer, self._question = self._answer, None
            return None if self._overdue else answer
        if not self._overdue and now_s - self._asked_s > self._limit_s:
            self._overdue = True
            return Analysis(None, f"policy {self._policy.name!r} did not answer within {self._limit_s:g} s")
        return None

    def _think(self, observation: Observation) -> None:
        self._answer = analyze(self._policy, observation)
        self._done.set()
