"""One table of hosts: the process behind each number, its phase, and the works that it has.

A host joins as READY. It becomes LEAVING when it is to be given back: it hands over its lanes and gets nothing new. It is LOST
when its process has ended or its connection is gone; its record is then out of the table, and another process may join under
the same number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from elastream import rules
from elastream.engine.messages import Usage


class HostId(NamedTuple):
    """One process that is or was a host. Another process under the same number has another incarnation."""

    number: int
    incarnation: str


class HostPhase(Enum):
    """Phases in the life of a host."""

    READY = "ready"
    LEAVING = "leaving"
    LOST = "lost"


TRANSITIONS: dict[HostPhase, frozenset[HostPhase]] = {
    HostPhase.READY: frozenset({HostPhase.LEAVING, HostPhase.LOST}),
    HostPhase.LEAVING: frozenset({HostPhase.LOST}),
    HostPhase.LOST: frozenset(),
}


@dataclass
class HostRecord:
    """One host and the works that it has."""

    host: int
    incarnation: str
    pid: int = 0
    machine: str = ""
    executor: str = ""
    threads: int = rules.MOST_WAITING
    """Works that may wait in it side by side."""
    phase: HostPhase = HostPhase.READY
    computing: int = 0
    """Works that use a core."""
    reading: int = 0
    """Works of sources among them."""
    works: set[int] = field(default_factory=set)
    isolated: bool = False
    """True while it is kept free for a work that must be alone, or has that work."""
    usage: Usage | None = None
    """Its last report."""

    @property
    def identity(self) -> HostId:
        return HostId(self.host, self.incarnation)

    @property
    def leaving(self) -> bool:
        return self.phase is HostPhase.LEAVING

    @property
    def has_thread(self) -> bool:
        """True if one more work may wait in it."""
        return len(self.works) - self.computing < self.threads

    def enter(self, phase: HostPhase) -> None:
        """Change the phase; a transition that is not in the table is a defect."""
        assert phase in TRANSITIONS[self.phase], f"host {self.host}: {self.phase.value} -> {phase.value}"
        self.phase = phase


class HostTable:
    """Hosts by number. In the driver's thread only."""

    def __init__(self) -> None:
        self._records: dict[int, HostRecord] = {}
        self.threads = rules.MOST_WAITING
        """Of every host."""

    def __iter__(self) -> Iterator[HostRecord]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, host: int) -> bool:
        return host in self._records

    def __getitem__(self, host: int) -> HostRecord:
        return self._records[host]

    def get(self, host: int | None) -> HostRecord | None:
        return None if host is None else self._records.get(host)

    def identity(self, host: int | None) -> HostId | None:
        """Of the process that has this number now; None while there is none."""
        record = self.get(host)
        return None if record is None else record.identity

    def of(self, identity: HostId) -> HostRecord | None:
        """The record of this very process; None if it is gone."""
        record = self._records.get(identity.number)
        return record if record is not None and record.incarnation == identity.incarnation else None

    def staying(self) -> list[HostRecord]:
        """Hosts that may be given something new; all of them, if every one is leaving."""
        return [record for record in self._records.values() if not record.leaving] or list(self._records.values())

    def join(self, record: HostRecord) -> None:
        record.threads = self.threads
        self._records[record.host] = record

    def lose(self, host: int) -> HostRecord | None:
        """Take a host out of the table; None if it is not in it."""
        record = self._records.pop(host, None)
        if record is not None:
            record.enter(HostPhase.LOST)
        return record

    def set_threads(self, threads: int) -> None:
        """Have as many threads in every host."""
        self.threads = threads
        for record in self._records.values():
            record.threads = threads

    def release_isolated(self, *, idle_only: bool = False) -> None:
        """Let isolated hosts take other works again; with `idle_only`, those that have no work."""
        for record in self._records.values():
            if not (idle_only and record.works):
                record.isolated = False
