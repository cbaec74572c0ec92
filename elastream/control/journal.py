"""The journal: what was seen, wanted and decided in every interval, kept in the run's base directory.

A policy that has its own pace may look many times a second. Of looks at which nothing changed one in five seconds is kept whole; the
others are in the next entry in short, so that what came in and how late it left is known of all the time. An entry is
JSON; entries are kept in sealed files of a bounded size, the newest of which is written anew each time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elastream.codec import convert, encode
from elastream.control.guards import Guards
from elastream.control.journal_version_1 import from_version_1
from elastream.control.look import Look, shortened
from elastream.control.observation import Observation
from elastream.control.proposal import Decision, LevelDecision, Move, Proposal
from elastream.errors import Damaged, SettingError
from elastream.lanes import Store
from elastream.lanes.sealed import seal_body, unexpected, unseal_version

log = logging.getLogger("elastream.control")

FOLDER = "journal"

VERSION = 2
"""Of the entries; version 1 is read, too."""

PAGE_BYTES = 64 << 10
"""A page with more than this is finished; so much is written again at most for each entry."""

MOST_BYTES = 256 << 20
"""Of all pages together; the oldest go first."""

MOST_LOOKS = 256
"""In short, in one entry; they cover longer times where there were more."""


@dataclass(frozen=True)
class JournalEntry:
    """One interval."""

    number: int
    policy: str
    observation: Observation
    proposal: Proposal | None
    decisions: tuple[Decision, ...]
    error: str | None = None
    """Why there is no proposal."""
    thought_ms: float = 0.0
    """From the end of the interval to the decision."""
    guards: Guards = field(default_factory=Guards)
    """Those that disposed."""
    moves: tuple[Move, ...] = ()
    """Replicas that were given another host."""
    warning: str | None = None
    """Said once, in the first interval in which it holds: something is set so that no policy can do well."""
    levels: tuple[LevelDecision, ...] = ()
    """Seats, hosts and executors that were planned, or not."""
    looks: tuple[Look, ...] = ()
    """Those since the entry before, at which nothing changed and of which no entry was kept."""
    td_s: float = 0.0
    """Seconds between two decisions; 0: not known."""
    own_pace: bool = False
    """True: `td_s` is the policy's own pace, and not the user's."""
    paused: bool = False
    """True: the plant served nothing until the new sizes took effect."""

    @property
    def all_looks(self) -> tuple[Look, ...]:
        """All the time since the entry before: the looks that were not kept, and its own."""
        return (*self.looks, Look.of(self.observation))

    @property
    def is_quiet(self) -> bool:
        """True when nothing was changed, and there is nothing that people should know."""
        proposal, told = self.proposal, (self.error, self.warning, self.moves, self.observation.state_moves)
        if proposal is None or proposal.search or proposal.alerts or any(told):
            return False
        changed = [decision.rescales for decision in self.decisions] + [level.changes for level in self.levels]
        return not any(changed)


class Journal:
    """Appends entries; a new journal in an old base goes on after what is there."""

    def __init__(self, store: Store, quiet_s: float = 0.0) -> None:
        """`quiet_s`: of quiet entries, one is kept in this time, and the others in short."""
        self._store = store
        self._quiet_s = quiet_s
        self._kept_s = float("-inf")
        self._looks: list[Look] = []
        """Since the last entry that was kept."""
        self._sizes: dict[str, int] = _pages(store)
        self._page = int(next(reversed(self._sizes), "00000000.json").removesuffix(".json"))
        self._entries: list[bytes] = []
        self._bytes = 0
        self.last = -1
        """The number of the newest entry."""
        for name in reversed(self._sizes):
            try:
                self.last = int(_read_page(store, name)[1][-1]["number"])
                break
            except (Damaged, LookupError, TypeError, ValueError) as error:
                # The stream does not depend on its journal.
                log.warning("%s; the journal goes on after it", error)
        if self._sizes:
            self._turn()

    def append(self, entry: JournalEntry) -> None:
        since_s = entry.observation.ended_s - self._kept_s
        if entry.is_quiet and 0.0 <= since_s < self._quiet_s:
            self._looks = shortened([*self._looks, Look.of(entry.observation)], MOST_LOOKS)
            return
        entry, self._looks = replace(entry, looks=tuple(look.rounded() for look in self._looks)), []
        self._kept_s = entry.observation.ended_s
        text = encode(entry)
        self._entries.append(text)
        self._bytes += len(text)
        body = b'{"entries":[' + b",".join(self._entries) + b"]}"
        sealed = seal_body("journal", body, VERSION)
        self._store.write(f"{FOLDER}/{_name(self._page)}", sealed)
        self._sizes[_name(self._page)] = len(sealed)
        self.last = entry.number
        if self._bytes >= PAGE_BYTES:
            self._turn()

    def _turn(self) -> None:
        self._page += 1
        self._entries, self._bytes = [], 0
        while len(self._sizes) > 1 and sum(self._sizes.values()) > MOST_BYTES:
            oldest = next(iter(self._sizes))
            self._store.delete([f"{FOLDER}/{oldest}"])
            del self._sizes[oldest]


def read_journal(store: Store) -> Iterator[JournalEntry]:
    """All entries, the oldest first."""
    for name in _pages(store):
        version, documents = _read_page(store, name)
        where = f"{store}/{FOLDER}/{name}"
        for document in documents:
            try:
                document = from_version_1(document) if version == 1 else document
            except (KeyError, TypeError, ValueError, AttributeError, IndexError):
                raise unexpected("journal", where) from None
            yield convert(document, JournalEntry, where, fix="; restore the file from a copy")


def read_run(base: str, where: str) -> list[JournalEntry]:
    """The journal of a run, for people who name its base; `where` begins the message when there is none."""
    if "://" not in base and not Path(base).is_dir():
        raise SettingError(f"{where}: no such directory; name the base directory of a run")
    entries = list(read_journal(Store(base)))
    if not entries:
        raise SettingError(f"{where}: no journal there; it is written by runs with --policy")
    return entries


def _read_page(store: Store, name: str) -> tuple[int, list[Any]]:
    """The version of a page, and its entries as they were read."""
    where = f"{store}/{FOLDER}/{name}"
    version, document = unseal_version("journal", store.read(f"{FOLDER}/{name}"), where, (1, VERSION))
    entries = document.get("entries")
    if not isinstance(entries, list):
        raise unexpected("journal", where)
    return version, entries


def _pages(store: Store) -> dict[str, int]:
    """The files of a journal, the oldest first, and their bytes. Others may put files there: editors, file managers."""
    return {name: size for name, size in sorted(store.sizes(FOLDER).items()) if re.fullmatch(r"\d{8}\.json", name)}


def _name(page: int) -> str:
    return f"{page:08d}.json"
