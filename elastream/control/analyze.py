"""Analyze: ask the policy what it wants. Whatever a policy does, the stream goes on: this room makes sure of it."""

import math
import queue
import threading
from collections import Counter
from dataclasses import dataclass

from elastream.codec import checked
from elastream.control.observation import Observation
from elastream.control.policy import Policy
from elastream.control.proposal import Proposal
from elastream.errors import ElastreamError

PATIENCE_S = 0.05
"""How long the control loop waits for an answer; most take a thousandth of it. A later one is taken up at a later step."""


@dataclass(frozen=True)
class Analysis:
    """What a policy made of an observation: a proposal that has been checked, or why there is none."""

    proposal: Proposal | None
    error: str | None = None


def analyze(policy: Policy, observation: Observation) -> Analysis:
    """Ask, and check the answer."""
    try:
        answer = policy.propose(observation)
        return Analysis(_checked(answer, f"policy {policy.name!r}", observation))
    except WrongProposal as error:
        return Analysis(None, str(error))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            # Somebody at the keyboard, and not the policy.
            raise
        return Analysis(None, f"policy {policy.name!r} raised {type(error).__name__}: {error}")


class WrongProposal(ElastreamError):
    """An answer of a policy that cannot be used, and why."""


def _checked(answer: object, where: str, observation: Observation) -> Proposal:
    """The answer, if its types are right and it names operators, hosts and levels that there are, each once."""
    if not isinstance(answer, Proposal):
        raise WrongProposal(f"{where}: expected a Proposal, got {type(answer).__name__}")
    proposal = checked(answer, where, error=WrongProposal)
    operators = {operator.operator for operator in observation.scalable()}
    hosts = {host.host for host in observation.hosts}
    for want in proposal.wants:
        if want.need is not None and not math.isfinite(want.need):
            raise WrongProposal(f"{where}: operator {want.operator!r}: expected a finite need, got {want.need}")
    for home in proposal.homes:
        if home.host not in hosts:
            known = ", ".join(map(str, sorted(hosts)))
            raise WrongProposal(f"{where}: operator {home.operator!r}: no host {home.host}; there are {known}")
        if home.lane < 0:
            raise WrongProposal(f"{where}: operator {home.operator!r}: a replica is 0 or more, got {home.lane}")
    for name in [want.operator for want in proposal.wants] + [home.operator for home in proposal.homes]:
        if name not in operators:
            known = ", ".join(sorted(operators))
            raise WrongProposal(f"{where}: no operator {name!r} that can be rescaled; there are {known}")
    subjects = [f"operator {want.operator!r} is" for want in proposal.wants]
    subjects += [f"replica {home.lane} of {home.operator!r} is" for home in proposal.homes]
    subjects += [f"{want.level.value}s are" for want in proposal.levels]
    twice = [subject for subject, times in Counter(subjects).items() if times > 1]
    if twice:
        raise WrongProposal(f"{where}: {twice[0]} named twice")
    return proposal


class Analyst:
    """Asks the policy in a thread of its own, so that one that thinks for long, or for ever, holds nothing up."""

    def __init__(self, policy: Policy, limit_s: float, patience_s: float = PATIENCE_S) -> None:
        """With an infinite `patience_s` the policy is asked in the caller's thread: for virtual time."""
        self._policy = policy
        self._limit_s = limit_s
        self._patience_s = patience_s
        self._questions: queue.SimpleQueue[Observation | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._answer: Analysis | None = None
        self._done = threading.Event()
        self._done.set()
        self._asking = False
        """True until the answer to the last question was given out or became overdue."""
        self._asked_s = 0.0

    def ask(self, observation: Observation, now_s: float) -> Analysis | None:
        """Begin; gives the answer when it comes at once, or why there will be none."""
        if not self._done.is_set():
            for_s = now_s - self._asked_s
            return Analysis(None, f"policy {self._policy.name!r} has been thinking for {for_s:.1f} s; not asked again")
        if self._patience_s == math.inf:
            return analyze(self._policy, observation)
        self._answer, self._asked_s, self._asking = None, now_s, True
        self._done.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._think, name="elastream-policy", daemon=True)
            self._thread.start()
        self._questions.put(observation)
        self._done.wait(self._patience_s)
        return self.poll(now_s)

    def poll(self, now_s: float) -> Analysis | None:
        """The answer, once; or, once, that it is overdue. An answer that comes after that is too old to be used."""
        if not self._asking:
            return None
        if self._done.is_set():
            self._asking = False
            return self._answer
        if now_s - self._asked_s > self._limit_s:
            self._asking = False
            return Analysis(None, f"policy {self._policy.name!r} did not answer within {self._limit_s:g} s")
        return None

    def close(self) -> None:
        """End the thread once the policy is done."""
        self._questions.put(None)

    def _think(self) -> None:
        while (observation := self._questions.get()) is not None:
            self._answer = analyze(self._policy, observation)
            self._done.set()
