"""The file format of a tape: a header, then a step for each time that the driver waited for its hosts.

A step has what came in (events, requests, readings of clocks) and digests of what went out (entries, messages). Only the thread of
the driver writes one. Records are MessagePack with their length before them; a torn last record is left out.
"""

import hashlib
import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from elastream.engine.driver.lifecycle import Resize
from elastream.engine.hosts.link import HostCame, HostSaid, HostsFailed, HostUses, HostWent
from elastream.engine.messages import ToHost
from elastream.errors import SettingError
from elastream.fleet.machines import MachineFacts
from elastream.lanes.entries import Entry, Snapshot
from elastream.settings import Settings

log = logging.getLogger("elastream.run")

VERSION = 1
MAX_BYTES = 2**30
"""A longer tape ends with a warning; the stream goes on."""

MAX_RECORD_BYTES = 2**28

_LENGTH = struct.Struct("<I")


class Header(msgspec.Struct, frozen=True):
    """The beginning of a run."""

    version: int
    graph: str
    """Its name."""
    interval_s: float
    settings: Settings
    snapshot: Snapshot
    """The state of the base when it was opened."""
    first_entry: Entry
    timing_s: float


class Came(msgspec.Struct, frozen=True, tag="came"):
    event: HostCame


class Went(msgspec.Struct, frozen=True, tag="went"):
    event: HostWent


class Said(msgspec.Struct, frozen=True, tag="said"):
    event: HostSaid


class Uses(msgspec.Struct, frozen=True, tag="uses"):
    event: HostUses


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    event: HostsFailed


TapedEvent = Came | Went | Said | Uses | Failed
EVENT_TYPES: dict[type, Any] = {HostCame: Came, HostWent: Went, HostSaid: Said, HostUses: Uses, HostsFailed: Failed}


class TapedRequest(msgspec.Struct, frozen=True):
    """A request by the name of its type."""

    kind: str
    fields: dict[str, Any]


class Step(msgspec.Struct):
    """From one return of `poll` to the next call. The first step has no events: it is what comes before."""

    events: list[TapedEvent] = []
    stopping: bool = False
    """True if somebody had asked for a stop by then."""
    now: list[float] = []
    """Readings of the clocks, in their order."""
    wall: list[float] = []
    cpu: list[float] = []
    sizes: list[dict[str, Resize]] = []
    """Sizes that were taken, a value per tick."""
    requests: list[TapedRequest] = []
    """Requests that the tick took."""
    later_requests: list[TapedRequest] = []
    """Requests that were carried out after the tick, in virtual time."""
    housekept: list[tuple[list[tuple[str, int, int]], int]] = []
    machines: list[MachineFacts] = []
    most_machines: list[int] = []
    entries: list[str] = []
    """Digests of the entries that were written."""
    sent: list[tuple[int, str]] = []
    """Messages to hosts: the host, and a digest."""


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header).decode
_decode_step = msgspec.msgpack.Decoder(Step).decode


def digest(value: Entry | ToHost) -> str:
    return hashlib.blake2b(_encode(value), digest_size=8).hexdigest()


class TapeWriter:
    """Writes a tape. In the driver's thread, after the header."""

    def __init__(self, path: str) -> None:
        try:
            self._file = Path(path).open("xb")  # noqa: SIM115 - closed with the run
        except OSError as error:
            raise SettingError(f"record: {path}: cannot be written: {error.strerror}; name a new file") from None
        self._path = path
        self._bytes = 0

    def write(self, record: Header | Step) -> None:
        if self._file.closed:
            return
        data = _encode(record)
        if self._bytes + len(data) > MAX_BYTES:
            log.warning("record: %s has %d bytes and ends here; the stream goes on", self._path, self._bytes)
            self.close()
            return
        try:
            self._file.write(_LENGTH.pack(len(data)) + data)
        except OSError as error:
            log.warning("record: %s ends here: %s; the stream goes on", self._path, error)
            self.close()
        self._bytes += len(data)

    def close(self) -> None:
        self._file.close()


def read_tape(path: str) -> tuple[Header, Iterator[Step]]:
    """The header of a tape, and its steps."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"tape {path}: cannot be read: {error.strerror}") from None
    records = _records(data)
    try:
        header = _decode_header(next(records))
    except (StopIteration, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise SettingError(f"tape {path}: not a tape of this version: {error or 'it is empty'}") from None
    if header.version != VERSION:
        raise SettingError(f"tape {path}: has version {header.version}, expected {VERSION}")
    return header, _steps(records, path)


def _steps(records: Iterator[bytes], path: str) -> Iterator[Step]:
    for number, record in enumerate(records):
        try:
            yield _decode_step(record)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SettingError(f"tape {path}: step {number} is damaged: {error}") from None


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length > MAX_RECORD_BYTES or at + length > len(data):
            return
        yield data[at : at + length]
        at += length
