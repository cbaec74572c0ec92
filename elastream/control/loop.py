"""The control loop: monitor, analyze, plan, execute, once every `td`; called after every tick."""

import logging
from collections.abc import Callable

from elastream.control.analyze import PATIENCE_S, Analysis, Analyst
from elastream.control.execute import execute
from elastream.control.guard import History
from elastream.control.guards import Guards
from elastream.control.journal import Journal, JournalEntry
from elastream.control.monitor import Monitor
from elastream.control.observation import Observation
from elastream.control.plan import Planned, plan
from elastream.control.plant import Plant
from elastream.control.proposal import Policy
from elastream.control.way import too_short
from elastream.errors import SettingError

log = logging.getLogger("elastream.control")


def checked_td(td_s: float) -> float:
    if not 0 < td_s < float("inf"):
        raise SettingError(f"td_s must be more than 0, got {td_s:g}")
    return td_s


def interval_of(policy: Policy | None, td_s: float) -> float:
    """How long an interval is: `td_s`, or less when the policy has an `every_s`, how often it must be asked."""
    every_s: float = getattr(policy, "every_s", td_s)
    return min(checked_td(td_s), checked_td(every_s))


class ControlLoop:
    """Keeps one plant at the size that one policy wants, within the guards."""

    def __init__(
        self,
        plant: Plant,
        policy: Policy,
        *,
        td_s: float,
        guards: Guards,
        journal: Journal | None = None,
        clock: Callable[[], float],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._plant = plant
        self._policy = policy
        self._guards = guards
        self._journal = journal
        self._clock = clock
        self._monitor = Monitor(plant, checked_td(td_s))
        self._td_s = td_s
        self._warned = False
        self._analyst = Analyst(policy, td_s, patience_s)
        self._seen: Observation | None = None
        self._ended_s = 0.0
        self._number = journal.last if journal else -1
        self._history = History()
        self.on_decision: list[Callable[[JournalEntry], object]] = []

    @property
    def policy(self) -> str:
        return self._policy.name

    def step(self) -> JournalEntry | None:
        """Called after every tick; gives the interval's entry when one has been decided."""
        now_s = self._clock()
        observation = self._monitor.look(now_s)
        if observation is None:
            analysis = self._analyst.poll(now_s)
        else:
            unanswered = self._analyst.poll(now_s)
            if unanswered is not None and self._seen is not None:
                self._conclude(self._seen, unanswered)
            self._seen, self._ended_s = observation, now_s
            analysis = self._analyst.ask(observation, now_s)
        if analysis is None or self._seen is None:
            return None
        return self._conclude(self._seen, analysis)

    def _conclude(self, observation: Observation, analysis: Analysis) -> JournalEntry:
        planned = Planned()
        if analysis.proposal is None:
            log.warning("%s; the sizes stay", analysis.error)
        else:
            planned = plan(observation, analysis.proposal, self._guards, self._history)
            still_s = execute(self._plant, planned, analysis.proposal.restart)
            self._history.add(observation.ended_s, planned.changed)
            if still_s:
                self._monitor.begin_again(self._clock() + still_s)
        self._number += 1
        thought_ms = round((self._clock() - self._ended_s) * 1e3, 3)
        entry = JournalEntry(
            self._number,
            self._policy.name,
            observation,
            analysis.proposal,
            planned.decisions,
            analysis.error,
            thought_ms,
            self._guards,
            planned.moves,
            self._warning(observation),
            planned.levels,
            td_s=self._td_s,
        )
        self._write(entry)
        try:
            for listener in self.on_decision:
                listener(entry)
        except Exception:
            log.exception("a listener to decisions raised; the stream goes on")
        return entry

    def _warning(self, observation: Observation) -> str | None:
        """Once."""
        warning = None if self._warned else too_short(self._td_s, observation)
        if warning is not None:
            self._warned = True
            log.warning("%s", warning)
        return warning

    def _write(self, entry: JournalEntry) -> None:
        if self._journal is not None:
            try:
                self._journal.append(entry)
            except OSError as error:
                # The ledger decides whether the run can go on.
                log.warning("journal: interval %d could not be written: %s", entry.number, error)
