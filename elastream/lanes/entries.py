"""Entries of the ledger as they are written, and the snapshot with which a log begins."""

from typing import Any, NamedTuple

import msgspec

from elastream.lanes.counts import OperatorCounts
from elastream.lanes.segments import Appended, SchemaId, Slice
from elastream.lanes.state_log import Change, Whole
from elastream.lanes.state_sums import Sums

Memory = dict[str, Any]
"""Per part of a source, which of its last records were there: see `elastream.kafka`."""


class Given(NamedTuple):
    """Tuples at the head of a lane that somebody outside is given: a sink, or a dataframe operator.

    Whoever gets them may see them again after a crash, and must then see the same rows under the same name.
    """

    operator: str
    lane: int
    rows: int
    entry: int
    """The entry that says so."""
    planned_s: float
    """When it was planned: older tuples than `t_out_s` before it are left out, also when it is repeated."""
    t_out_s: float | None = None


class Reread(NamedTuple):
    """The tuples that a dataframe operator with state took last: Spark may repeat the batch they were in."""

    offer: int
    operator: str
    lane: int
    first: int
    planned_s: float
    t_out_s: float | None
    slices: list[Slice]


class StateChange(NamedTuple):
    """What a work changed in the states of an operator, by key group."""

    operator: str
    slice: Slice
    sums: Sums = b""
    """Per run of the slice's key groups, the checksums of the group before and after; 0 inside a group that is in several slices."""


class GroupWhole(NamedTuple):
    """The state of a key group, written whole."""

    operator: str
    group: int
    keys: int
    size: int
    slices: list[Slice]
    since: int = -1
    """As of which change: it has all changes before this number. Below 0: all before its entry (bases of 0.2)."""
    checksum: int = 0
    """Of what was written; 0: not recorded."""
    before: int = 0
    """The checksum before keys that were too old were left out."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit: what happened since the entry before it. Written whole or not at all."""

    number: int
    at_s: float
    consumed: list[tuple[str, int, int]] = []
    """(operator, lane, tuples)."""
    appended: list[Appended] = []
    counts: dict[str, OperatorCounts] = {}
    """Per operator, what is added to its totals."""
    sources: dict[str, dict[str, Any]] = {}
    """Per source that moved, how far it has been read."""
    given: list[Given] = []
    sizes: dict[str, int] = {}
    """Per operator whose replicas changed, how many there are."""
    schemas: dict[SchemaId, str] = {}
    """Schemas that slices name for the first time."""
    estimates: dict[str, tuple[float, float]] = {}
    """Per operator, now and then: seconds per tuple, and tuples out per tuple in."""
    outputs: list[str] | None = None
    """Operators whose lanes are read from outside, when that changed: what waits there has finished."""
    query: str | None = None
    """Spark's id of the edge query, when this entry commits one of its batches."""
    batch: int = -1
    offer: int = -1
    """The number of the offer to dataframe operators that this entry makes."""
    reread: list[Reread] | None = None
    """What dataframe operators with state took in the batch that this entry commits."""
    owners: dict[str, dict[int, int]] = {}
    """Per operator that is reached by keys, the key groups that change hands, each with its new lane; what waits of them moves."""
    hash_version: int = 0
    """Of the hash by which keys fall into groups, when groups are first dealt out."""
    states: dict[str, str] = {}
    """Per keyed operator, the columns of its key and state, when they changed."""
    forgotten: list[str] = []
    """Operators of which nothing is remembered any more."""
    watermarks: dict[str, float] = {}
    """Per keyed operator whose watermark moved."""
    changes: list[StateChange] = []
    wholes: list[GroupWhole] = []
    memories: dict[str, Memory] = {}
    """Per source that is read once, the parts of its memory that changed; the others stay as they were."""


class Snapshot(msgspec.Struct, frozen=True):
    """The whole state as it is written: a log begins with one."""

    entry: int
    at_s: float
    lanes: list[tuple[str, int, int, list[Slice]]]
    """(operator, lane, tuples consumed, slices that wait)."""
    schemas: dict[SchemaId, str]
    totals: dict[str, OperatorCounts]
    sources: dict[str, dict[str, Any]]
    given: list[Given]
    sizes: dict[str, int]
    estimates: dict[str, tuple[float, float]]
    outputs: list[str]
    query: str
    batch: int
    offer: int
    reread: list[Reread]
    owners: dict[str, list[int]] = {}
    hash_version: int = 0
    states: dict[str, str] = {}
    watermarks: dict[str, float] = {}
    logs: dict[str, tuple[int, list[Change], dict[int, Whole]]] = {}
    """Per keyed operator, the number of its next change, its changes, and its key groups as they were written whole."""
    memories: dict[str, Memory] = {}
    """Per source that is read once, its whole memory."""
