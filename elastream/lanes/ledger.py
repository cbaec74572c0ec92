"""The ledger: entries written one after another. That write is the only commit point.

On a file system the ledger is a log: a file to which records are appended, each with its length and checksum. A log begins
with a snapshot of the whole state, so that it can be read by itself; a new one is begun when the entries in the last have
grown larger than that. A record that is cut off at the end of a log did not happen.

A driver that takes over a base begins a new epoch with a log of its own. What a driver that was cut off still appends to its
log is never read: of an older log only the entries before the newer one count, and only when its snapshot is damaged.

An object store has no files to append to: there each entry is an object, named by its epoch and number.
"""

from collections.abc import Iterator

import msgspec

from elastream.errors import BaseInUse, Damaged
from elastream.lanes.entries import Entry
from elastream.lanes.ledger_files import (
    Listing,
    Place,
    Reading,
    entry_name,
    listed,
    log_name,
    read_entries,
    read_on,
    read_state,
    read_while_written,
    spans,
)
from elastream.lanes.records import MAGIC, pack
from elastream.lanes.state import LedgerState
from elastream.lanes.store import AppendFile, Store

LEAST_BYTES = 4 << 20
"""Entries of a log, before a new one is begun; more when the snapshot is larger."""

LEAST_OBJECTS = 256
"""The same where every entry is an object."""

KEPT_LOGS = 2
"""The log before the last is kept, so that a damaged snapshot does not stop a restart."""

_encode = msgspec.msgpack.Encoder().encode


class Ledger:
    """The logs of one base directory. Reading needs no lock; `begin` and `commit` are for the driver that holds the base."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: list[Place] = []
        self._damaged: frozenset[Place] = frozenset()
        self._epoch = 0
        self._file: AppendFile | None = None
        self._size = 0
        self._entries_since = 0
        self._bytes_since = 0
        self._snapshot_bytes = 0

    def load(self) -> LedgerState:
        """The state as of the last entry. A new base gives an empty one."""
        reading = read_while_written(self._store, lambda listing: read_state(self._store, listing))
        self._logs, self._damaged = reading.logs, reading.damaged
        return reading.state

    def begin(self, state: LedgerState) -> None:
        """Take over: a new epoch, whose log begins with this state. Raises when another driver was quicker."""
        self._epoch = max((epoch for epoch, _ in self._logs), default=0) + 1
        mine = self._epoch, state.entry + 1
        self._refuse_rivals({mine})
        self._roll(state)
        try:
            # Two that began at different entries have logs of different names.
            self._refuse_rivals({mine})
        except BaseInUse:
            self.close()
            self._store.delete([log_name(*mine)])
            raise

    def commit(self, entry: Entry) -> None:
        """Write one entry. When this returns it has happened; when it raises it has not."""
        record = pack(_encode(entry))
        if not self._epoch:
            raise ValueError(f"ledger of {self._store}: call begin() before commit()")
        if self._store.is_local:
            self._append(record)
        else:
            self._store.write(entry_name(self._epoch, entry.number), MAGIC + record)
        self._entries_since += 1
        self._bytes_since += len(record)

    def tidy(self, state: LedgerState) -> None:
        """Begin a new log when the last has become long, and remove those that are no longer needed."""
        objects = not self._store.is_local and self._entries_since >= LEAST_OBJECTS
        if self._bytes_since >= max(LEAST_BYTES, 2 * self._snapshot_bytes) or objects:
            self._refuse_rivals(set(self._logs))
            self._roll(state)

    def entries(self) -> Iterator[Entry]:
        """The entries still kept, in order."""
        return iter(read_while_written(self._store, lambda listing: read_entries(self._store, listing)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, record: bytes) -> None:
        if self._file is None:
            raise ValueError(f"ledger of {self._store}: its log was closed")
        try:
            self._file.write(record)
        except OSError:
            # Whatever was written of it must not be in front of a later record.
            try:
                self._file.truncate(self._size)
            except OSError:
                self.close()
            raise
        self._size += len(record)

    def _roll(self, state: LedgerState) -> None:
        snapshot = MAGIC + pack(_encode(state.snapshot()))
        place = self._epoch, state.entry + 1
        name = log_name(*place)
        if not self._store.write_new(name, snapshot):
            raise BaseInUse(f"base {self._store}: {name} was written by another driver; this one stops")
        self.close()
        if self._store.is_local:
            self._file = self._store.append_to(name)
            self._size = len(snapshot)
        self._entries_since = self._bytes_since = 0
        self._snapshot_bytes = len(snapshot)
        self._logs.append(place)
        self._remove_old()

    def _remove_old(self) -> None:
        """Keep two logs whose snapshots are whole, as far as is known, and the logs between them."""
        good = [span.place for span in spans(self._logs) if span.place not in self._damaged]
        if len(good) <= KEPT_LOGS:
            return
        first = good[-KEPT_LOGS]
        old = [place for place in self._logs if place < first]
        self._logs = [place for place in self._logs if place >= first]
        self._store.delete(log_name(*place) for place in old)
        if not self._store.is_local:
            self._store.delete(entry_name(*place) for place in listed(self._store).entries if place < first)

    def _refuse_rivals(self, mine: set[Place]) -> None:
        if any(place not in mine and place[0] >= self._epoch for place in listed(self._store).logs):
            raise BaseInUse(f"base {self._store}: another driver has taken it over; this one stops")


class LedgerReader:
    """Follows a ledger that a driver writes: the whole once, then what is new."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = Reading(LedgerState())

    @property
    def state(self) -> LedgerState:
        return self._reading.state

    def refresh(self) -> LedgerState:
        """The state as of the newest entry that is whole."""
        self._reading = read_while_written(self._store, self._read)
        return self.state

    def _read(self, listing: Listing) -> Reading:
        if listing.logs and self._reading.logs[-1:] == listing.logs[-1:]:
            try:
                read_on(self._store, listing, self._reading)
                return self._reading
            except Damaged:
                # It may be another log of the same name, of a base that was begun anew: then it is whole from its beginning on.
                pass
        # A new log begins with everything.
        return read_state(self._store, listing)
