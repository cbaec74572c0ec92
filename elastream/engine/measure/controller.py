"""Work beside the driver after each publication: measure, decide, call listeners."""

import logging
import math

from elastream.control import ControlLoop, JournalEntry
from elastream.control.listeners import Listeners
from elastream.engine.beside import Mailbox, mailbox
from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.status import Publication
from elastream.engine.measure.observer import RunObserver
from elastream.errors import RunFailed

log = logging.getLogger("elastream.run")


class RunController:
    """Hands publications to the observer, the listeners and the control loop, each isolated from the driver.

    The control loop, its journal and model files run in one thread. Listeners run in another: a slow one delays no decision.
    In virtual time everything runs inline.
    """

    def __init__(self, observer: RunObserver, control: ControlLoop | None, *, inline: bool) -> None:
        self._observer = observer
        self._control = control
        self.ticks: Listeners[Tick] = Listeners("ticks", log)
        self.decisions: Listeners[JournalEntry] = Listeners("decisions", log)
        self._publications: Mailbox[Publication] = mailbox("control", self._take, inline=inline)
        self._events: Mailbox[Tick | JournalEntry] = mailbox("listeners", self._tell, inline=inline)
        if control is not None:
            control.on_decision.append(self._events.put)

    @property
    def policy(self) -> str | None:
        """The name of the policy; None if there is none."""
        return self._control.policy if self._control else None

    def deliver(self, publication: Publication) -> None:
        """Take a publication. Called by the driver; returns at once, except in virtual time."""
        self._publications.put(publication)

    def due_s(self) -> float:
        """Wall time at which the control loop wants the next status. Any thread may ask."""
        return self._control.due_s if self._control else math.inf

    @property
    def is_here(self) -> bool:
        """True in one of the threads that this object runs."""
        return self._publications.is_here or self._events.is_here

    def close(self, timeout_s: float) -> bool:
        """Deliver what was published before; False if that takes longer."""
        in_time = self._publications.close(timeout_s)
        if self._control is not None:
            self._control.close()
        return self._events.close(timeout_s) and in_time

    def _take(self, publication: Publication) -> None:
        self._observer.take(publication)
        for tick in publication.ticks:
            self._events.put(tick)
        if self._control is not None and publication.status.phase is Phase.RUNNING:
            try:
                self._control.step()
            except RunFailed as error:
                # It ended while a decision was under way.
                log.debug("a decision was not applied: %s", error)

    def _tell(self, event: Tick | JournalEntry) -> None:
        if isinstance(event, JournalEntry):
            self.decisions.tell(event)
        else:
            self.ticks.tell(event)
