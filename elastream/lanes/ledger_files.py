"""The files of a ledger: how they are named, which of them count, and the state that they tell."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import msgspec

from elastream.errors import Damaged
from elastream.lanes.entries import Entry, Snapshot
from elastream.lanes.records import begin_of, end_of, records
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store

FOLDER = "ledger"

TRIES = 8
"""A driver removes a log only after it has begun two newer ones, so whoever reads meanwhile seldom needs a second try."""

_LOG = re.compile(r"(\d{8})-(\d{12})\.log")
_ENTRY = re.compile(r"(\d{8})-(\d{12})\.entry")
_FIRST_EDITION = re.compile(r"(entry|book)-\d{12}\.json")

_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode

Place = tuple[int, int]
"""(epoch, entry): of a log, the first entry behind its snapshot."""

T = TypeVar("T")


class Listing(NamedTuple):
    """The files that there are, of one moment."""

    logs: list[Place]
    entries: list[Place]
    """Where every entry is an object."""

    @property
    def newest(self) -> Place | None:
        return self.logs[-1] if self.logs else None

    @property
    def epoch(self) -> int:
        return self.logs[-1][0] if self.logs else 0


class Span(NamedTuple):
    """A log, and which of its entries count: those before `stop`, where the next log begins."""

    place: Place
    stop: int | None


@dataclass
class Reading:
    """What was read of a ledger, and how far. Reading on changes it."""

    state: LedgerState
    logs: list[Place] = field(default_factory=list)
    damaged: frozenset[Place] = frozenset()
    """Logs whose snapshots are."""
    end: int = 0
    """How many bytes of the newest log were read, where it is a file."""


def log_name(epoch: int, entry: int) -> str:
    return f"{FOLDER}/{epoch:08d}-{entry:012d}.log"


def entry_name(epoch: int, entry: int) -> str:
    return f"{FOLDER}/{epoch:08d}-{entry:012d}.entry"


def listed(store: Store) -> Listing:
    """The files of a base. Raises when the first edition wrote it."""
    names = store.sizes(FOLDER)
    if any(map(_FIRST_EDITION.fullmatch, names)):
        raise Damaged(
            f"base {store}: was written by Elastream 0.1, whose ledger this version does not read; finish it with that version, "
            "or begin with a new base"
        )
    return Listing(_places(_LOG, names), _places(_ENTRY, names))


def spans(logs: list[Place]) -> list[Span]:
    """The logs that count, in order. One that begins behind a newer one is of a driver that was cut off."""
    found: list[Span] = []
    for place in reversed(logs):
        stop = found[-1].place[1] if found else None
        if stop is None or place[1] <= stop:
            found.append(Span(place, stop))
    return found[::-1]


def read_while_written(store: Store, read: Callable[[Listing], T]) -> T:
    """What `read` makes of the files, tried again when the driver removes one meanwhile, or another takes over."""
    for _ in range(TRIES - 1):
        listing = listed(store)
        try:
            found = read(listing)
        except FileNotFoundError:
            continue
        if listed(store).epoch == listing.epoch:
            # So whatever was read was written before another driver took over: it was committed.
            return found
    return read(listed(store))


def read_state(store: Store, listing: Listing) -> Reading:
    """From the newest snapshot that is whole, through all entries behind it."""
    damage: Damaged | None = None
    damaged: set[Place] = set()
    found = spans(listing.logs)
    for number in range(len(found) - 1, -1, -1):
        log = _LogFile(store, found[number].place)
        try:
            reading = Reading(LedgerState.restored(log.snapshot()), listing.logs, frozenset(damaged))
        except Damaged as error:
            damage = damage or error
            damaged.add(found[number].place)
            continue
        try:
            _read_through(store, listing, found[number:], log, reading)
        except Damaged as error:
            # With the newest snapshot the others would not be needed, so that is the one to mend.
            raise damage or error from None
        return reading
    if damage:
        raise damage
    return Reading(LedgerState(), listing.logs)


def read_on(store: Store, listing: Listing, reading: Reading) -> None:
    """Apply what was added to the newest log since it was read."""
    place = listing.logs[-1]
    if store.is_local:
        for entry, end in _LogFile(store, place, reading.end).entries(reading.end):
            _apply(store, reading, entry, end)
    else:
        for entry in _objects(store, listing, Span(place, None), reading.state.entry + 1):
            _apply(store, reading, entry, 0)


def read_entries(store: Store, listing: Listing) -> list[Entry]:
    """The entries that are still kept and count, in order."""
    return [
        entry
        for span in spans(listing.logs)
        for entry, _ in _entries(store, listing, span, _LogFile(store, span.place))
    ]


class _LogFile:
    """A log, or the part of it from byte `begin` on."""

    def __init__(self, store: Store, place: Place, begin: int = 0) -> None:
        name = log_name(*place)
        self._where = f"{store}/{name}"
        self._begin = begin
        self._data = store.read_from(name, begin) if begin else store.read(name)

    def snapshot(self) -> Snapshot:
        for record in records(self._data, self._where, begin_of(self._data, self._where)):
            return _checked(_decode_snapshot, record.payload, self._where)
        raise self._has_no_snapshot()

    def snapshot_end(self) -> int:
        """Where the entries begin; the snapshot may be damaged while they are good."""
        end = end_of(self._data, self._where, begin_of(self._data, self._where))
        if end is None:
            raise self._has_no_snapshot()
        return end

    def entries(self, at: int) -> Iterator[tuple[Entry, int]]:
        """The entries from a byte on, and where each ends."""
        for record in records(self._data, self._where, at - self._begin, self._begin):
            yield _checked(_decode_entry, record.payload, self._where), record.end + self._begin

    def _has_no_snapshot(self) -> Damaged:
        return Damaged(f"{self._where}: it has no snapshot; restore the file from a copy and start again")


def _read_through(store: Store, listing: Listing, found: list[Span], first: _LogFile, reading: Reading) -> None:
    """Apply all entries that count, from those of the log `first` on."""
    log = first
    for span in found:
        if span is not found[0]:
            log = _LogFile(store, span.place)
        if reading.state.entry + 1 != span.place[1]:
            raise _missing(store, reading.state.entry + 1, span.place[1])
        reading.end = log.snapshot_end()
        for entry, end in _entries(store, listing, span, log):
            _apply(store, reading, entry, end)


def _entries(store: Store, listing: Listing, span: Span, log: _LogFile) -> Iterator[tuple[Entry, int]]:
    at = log.snapshot_end()
    if store.is_local:
        for entry, end in log.entries(at):
            if span.stop is None or entry.number < span.stop:
                yield entry, end
    else:
        for entry in _objects(store, listing, span, span.place[1]):
            yield entry, at


def _objects(store: Store, listing: Listing, span: Span, first: int) -> Iterator[Entry]:
    """The entries of an epoch that are objects, from `first` on."""
    epoch = span.place[0]
    numbers = [
        n for other, n in listing.entries if other == epoch and n >= first and (span.stop is None or n < span.stop)
    ]
    names = [entry_name(epoch, number) for number in numbers]
    for name, data in zip(names, store.read_many(names), strict=True):
        where = f"{store}/{name}"
        for record in records(data, where, begin_of(data, where)):
            yield _checked(_decode_entry, record.payload, where)


def _apply(store: Store, reading: Reading, entry: Entry, end: int) -> None:
    if entry.number != reading.state.entry + 1:
        raise _missing(store, reading.state.entry + 1, entry.number)
    try:
        reading.state.apply(entry)
    except (ValueError, LookupError, TypeError) as error:
        raise Damaged(
            f"ledger in {store}: entry {entry.number} does not fit what was before it: {error}; restore {FOLDER} from a copy and start again"
        ) from None
    reading.end = end


def _missing(store: Store, number: int, before: int) -> Damaged:
    return Damaged(
        f"ledger in {store}: entry {number} is missing before {before}; restore {FOLDER} from a copy and start again"
    )


def _checked(decode: Callable[[bytes], T], payload: bytes, where: str) -> T:
    try:
        return decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Damaged(f"{where}: a record is not what it should be: {error}; restore the file from a copy") from None


def _places(pattern: re.Pattern[str], names: Iterable[str]) -> list[Place]:
    return sorted((int(match[1]), int(match[2])) for match in map(pattern.fullmatch, names) if match)
