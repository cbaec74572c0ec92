"""The journal: what was seen, wanted and decided in every interval, kept in the run's base directory.

A policy that has its own pace may look many times a second. Of looks at which nothing changed one in five seconds is kept whole; the
others are in the next entry in short, so that what came in and how late it left is known of all the time. An entry is
JSON; entries are kept in sealed files of a bounded size, the newest of which is written anew each time.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elastream.control.guards import Guards
from elastream.control.look import Look, shortened
from elastream.control.observation import Observation
from elastream.control.proposal import Decision, LevelDecision, Move, Proposal, level_decision
from elastream.errors import Damaged, SettingError
from elastream.lanes import Store
from elastream.lanes.sealed import seal_body, unexpected, unseal

log = logging.getLogger("elastream.control")

FOLDER = "journal"

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

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {
            "observation": self.observation.to_json(),
            "proposal": self.proposal.to_json() if self.proposal else None,
            "decisions": [vars(decision) for decision in self.decisions],
            "guards": self.guards.to_json(),
            "moves": [vars(move) for move in self.moves],
            "levels": [decision.to_json() for decision in self.levels],
            "looks": [look.to_json() for look in self.looks],
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> JournalEntry:
        proposal = document["proposal"]
        # Until 0.2 a proposal said whether the policy's system restarts: true, or how.
        restarts = proposal is not None and proposal.get("restart", "no") not in ("no", False)
        return cls(
            **{
                "paused": restarts,
                **document,
                "observation": Observation.from_json(document["observation"]),
                "proposal": Proposal.from_json(proposal) if proposal else None,
                "decisions": tuple(Decision.from_json(decision) for decision in document["decisions"]),
                "guards": Guards.from_json(document["guards"]),
                "moves": tuple(Move(**move) for move in document.get("moves", ())),
                "levels": tuple(map(level_decision, document.get("levels", ()))),
                "looks": tuple(map(Look.from_json, document.get("looks", ()))),
            }
        )


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
        self._entries: list[str] = []
        self._bytes = 0
        self.last = -1
        """The number of the newest entry."""
        for name in reversed(self._sizes):
            try:
                self.last = int(_read_page(store, name)[-1]["number"])
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
        entry, self._looks = replace(entry, looks=tuple(self._looks)), []
        self._kept_s = entry.observation.ended_s
        text = json.dumps(entry.to_json(), separators=(",", ":"))
        self._entries.append(text)
        self._bytes += len(text)
        body = '{"entries":[' + ",".join(self._entries) + "]}"
        sealed = seal_body("journal", body.encode())
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
        for document in _read_page(store, name):
            try:
                entry = JournalEntry.from_json(document)
            except (KeyError, TypeError, ValueError, AttributeError, SettingError):
                raise unexpected("journal", f"{store}/{FOLDER}/{name}") from None
            yield entry


def read_run(base: str, where: str) -> list[JournalEntry]:
    """The journal of a run, for people who name its base; `where` begins the message when there is none."""
    if "://" not in base and not Path(base).is_dir():
        raise SettingError(f"{where}: no such directory; name the base directory of a run")
    entries = list(read_journal(Store(base)))
    if not entries:
        raise SettingError(f"{where}: no journal there; it is written by runs with --policy")
    return entries


def _read_page(store: Store, name: str) -> list[dict[str, Any]]:
    page = f"{FOLDER}/{name}"
    entries = unseal("journal", store.read(page), f"{store}/{page}").get("entries")
    if not isinstance(entries, list):
        raise unexpected("journal", f"{store}/{page}")
    return entries


def _pages(store: Store) -> dict[str, int]:
    """The files of a journal, the oldest first, and their bytes. Others may put files there: editors, file managers."""
    return {name: size for name, size in sorted(store.sizes(FOLDER).items()) if re.fullmatch(r"\d{8}\.json", name)}


def _name(page: int) -> str:
    return f"{page:08d}.json"
