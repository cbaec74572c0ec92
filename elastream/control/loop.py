"""The control loop: monitor, analyze, plan, execute, once every `td`. It runs beside the engine and inline in a simulation."""

import logging
from collections.abc import Callable

from elastream.control.analyze import PATIENCE_S, Analysis, Analyst
from elastream.control.execute import execute
from elastream.control.guard import History
from elastream.control.guards import Guards
from elastream.control.interval import has_own_pace, interval_of
from elastream.control.journal import Journal, JournalEntry
from elastream.control.listeners import Listeners
from elastream.control.monitor import Monitor
from elastream.control.observation import Observation
from elastream.control.plan import Planned, plan
from elastream.control.plant import Plant
from elastream.control.policy import Policy
from elastream.control.way import too_short

log = logging.getLogger("elastream.control")


class ControlLoop:
    """Keeps one plant at the size that one policy wants, within the guards.

    `td_s` is the user's interval; None: the policy's own pace, or the default (`control/interval.py`).
    """

    def __init__(
        self,
        plant: Plant,
        policy: Policy,
        *,
        td_s: float | None = None,
        guards: Guards,
        journal: Journal | None = None,
        clock: Callable[[], float],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._plant = policy.wrap(plant)
        self._policy = policy
        self._guards = guards
        self._journal = journal
        self._clock = clock
        self._td_s = interval_of(policy, td_s)
        self._own_pace = has_own_pace(policy, td_s)
        self._monitor = Monitor(self._plant, self._td_s)
        self._warned = False
        self._analyst = Analyst(policy, self._td_s, patience_s)
        self._seen: Observation | None = None
        self._ended_s = 0.0
        self._number = journal.last if journal else -1
        self._history = History()
        self.on_decision: Listeners[JournalEntry] = Listeners("decisions", log)

    @property
    def policy(self) -> str:
        return self._policy.name

    @property
    def due_s(self) -> float:
        """When the next interval ends, by this loop's clock. Any thread may ask."""
        return self._monitor.due_s

    def step(self) -> JournalEntry | None:
        """Called as often as there is something new to see; gives the interval's entry when one has been decided."""
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

    def close(self) -> None:
        """No step comes any more."""
        self._analyst.close()

    def _conclude(self, observation: Observation, analysis: Analysis) -> JournalEntry:
        planned, delay_s = Planned(), 0.0
        if analysis.proposal is None:
            log.warning("%s; the sizes stay", analysis.error)
        else:
            planned = plan(observation, analysis.proposal, self._guards, self._history)
            delay_s = execute(self._plant, planned)
            self._history.add(observation.ended_s, planned.changed)
            if delay_s:
                self._monitor.begin_again(self._clock() + delay_s)
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
            own_pace=self._own_pace,
            paused=delay_s > 0,
        )
        self._write(entry)
        self.on_decision.tell(entry)
        return entry

    def _warning(self, observation: Observation) -> str | None:
        """Once, and only about an interval that the user can change: a policy knows why its own pace is what it is."""
        warning = None if self._warned or self._own_pace else too_short(self._td_s, observation)
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
