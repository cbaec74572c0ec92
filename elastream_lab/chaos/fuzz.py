"""Damaged input of every kind: each is answered with one clear line or an accepted value, never with a traceback."""

import random
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import msgspec
import pyarrow as pa

from elastream.control import Journal, read_journal
from elastream.control.guards import Guards
from elastream.control.journal import VERSION, JournalEntry
from elastream.control.proposal import Proposal, Want
from elastream.engine import messages, wire
from elastream.engine.messages import LaneReceipt, Receipt, Receipts
from elastream.engine.worker.base_id import base_id, known_id
from elastream.errors import ElastreamError
from elastream.lanes import Appended, Entry, LaneId, Ledger, LedgerState, SchemaId, Slice, Store
from elastream.lanes.lease import BaseLease
from elastream.lanes.readers import acknowledge, acknowledged
from elastream.lanes.records import MAGIC, pack, records
from elastream.lanes.sealed import seal_body
from elastream.lanes.segment_files import SegmentReader, SegmentWriter
from elastream.policies import make_policy
from elastream.report.scores.curve_file import read_curves
from elastream.simulator.cluster import load_cluster
from elastream.simulator.profile import load_profile
from elastream.testing import observation, operator, source
from elastream.topology import parse_schema
from elastream.workload import parse_workload
from elastream.workload.trace_file import from_csv
from elastream_lab.apps.common.payload_files import read_names, read_tsv
from elastream_lab.bench.suites.suite import parse_suite

LONGEST_LINE = 2000

ODD = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"{}",
    b"[]",
    b"9" * 40,
    b"\n",
    b",",
    b"\t",
    b": ",
    b"../..",
    b"%s",
)


@dataclass(frozen=True)
class Target:
    """Something that is read: a good example, and how it is read."""

    example: bytes
    read: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...] = (ElastreamError,)


@dataclass
class Tally:
    """How damaged inputs of one kind were answered."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def fuzz(inputs: int, seed: int, say: Callable[[str], None]) -> dict[str, Tally]:
    """So many damaged inputs, shared out among all kinds."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="elastream-fuzz-") as folder:
        targets = make_targets(Path(folder))
        tallies: dict[str, Tally] = {name: Tally() for name in targets}
        for name, target in targets.items():
            target.read(target.example)
            for _ in range(inputs // len(targets)):
                _try(target, damaged(target.example, chance), tallies[name])
            say(
                f"{name}: {tallies[name].accepted} accepted, {tallies[name].refused} refused, {len(tallies[name].failures)} failed"
            )
    return tallies


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The data with one to four things wrong in it."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(6):
            case 0 if found:
                found[at % len(found)] ^= 1 << chance.randrange(8)
            case 1:
                del found[at : at + chance.choice((1, 2, 8, 64, 4096))]
            case 2:
                found[at:at] = chance.choice(ODD)
            case 3:
                found[at : at + chance.randint(1, 6)] = chance.choice(ODD)
            case 4:
                found[at:at] = found[: chance.randint(0, 64)]
            case _:
                found[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
    return bytes(found)


def _try(target: Target, data: bytes, tally: Tally) -> None:
    tally.inputs += 1
    try:
        target.read(data)
        tally.accepted += 1
    except target.refuses as error:
        said = str(error)
        if "\n" in said or len(said) > LONGEST_LINE:
            tally.failures.append(f"not one line: {said[:300]!r}")
        else:
            tally.refused += 1
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        tally.failures.append(f"{type(error).__name__}: {error} at {where.filename}:{where.lineno} for {data[:200]!r}")


def make_targets(folder: Path) -> dict[str, Target]:
    """Everything that comes from outside."""
    return {**_stored(folder), **_written_by_people(folder), "message of a host": _message()}


def _stored(folder: Path) -> dict[str, Target]:
    store = Store(str(folder / "base"))
    schema, key = pa.schema({"id": pa.int64()}), SchemaId("s")
    piece = Slice("h1-1.arrow", 0, 10, 0, key, 0, 5)
    state = LedgerState()
    ledger = Ledger(store)
    ledger.begin(state)
    for number in range(3):
        entry = Entry(number, 1.0, appended=[Appended("a", 0, piece)], sizes={"a": 2}, schemas={key: "text"})
        state.apply(entry)
        ledger.commit(entry)
    ledger.close()
    (log,) = store.names("ledger")
    whole = store.read(f"ledger/{log}")
    payloads = [record.payload for record in records(whole, "log", len(MAGIC))]

    def read_ledger(data: bytes) -> None:
        store.write(f"ledger/{log}", data)
        Ledger(store).load()
        list(Ledger(store).entries())

    def read_resealed(data: bytes) -> None:
        read_ledger(MAGIC + pack(payloads[0]) + pack(data))

    writer = SegmentWriter(store, "h2", appends=False)
    batch = pa.record_batch({"id": list(range(50))}, schema=schema)
    written = writer.write({LaneId("a", 0): [batch]}, {"a": key}, frozenset()).appended[0].slice
    segment = store.read(f"segments/{written.segment}")

    def read_segment(data: bytes) -> None:
        store.write(f"segments/{written.segment}", data)
        reader = SegmentReader(store)
        try:
            reader.read(written, schema)
        finally:
            reader.close()

    Journal(store).append(_journal_entry())
    (page,) = store.names("journal")
    journal = store.read(f"journal/{page}")

    def read_page(data: bytes) -> None:
        store.write(f"journal/{page}", data)
        list(read_journal(store))

    acknowledge(store, "out", "someone", 7)
    position = store.read("readers/out/someone.json")

    def read_position(data: bytes) -> None:
        store.write("readers/out/someone.json", data)
        acknowledged(store, "out")

    base_id(store)
    name = store.read("base.json")

    def read_name(data: bytes) -> None:
        store.write("base.json", data)
        known_id(store)

    lease = BaseLease(store)
    lease.acquire()
    (claim,) = store.names("claims")
    claimed = store.read(f"claims/{claim}")
    lease.release()

    def read_claim(data: bytes) -> None:
        store.write(f"claims/{claim}", data)
        taken = BaseLease(store)
        taken.acquire()
        taken.confirm()
        taken.release()

    return {
        "ledger": Target(whole, read_ledger),
        "ledger, sealed anew": Target(payloads[1], read_resealed),
        "segment": Target(segment, read_segment),
        "journal": Target(journal, read_page),
        "journal, sealed anew": Target(_body(journal), lambda data: read_page(seal_body("journal", data, VERSION))),
        "reader": Target(position, read_position),
        "reader, sealed anew": Target(_body(position), lambda data: read_position(seal_body("reader", data))),
        "name of a base": Target(name, read_name),
        "claim": Target(claimed, read_claim),
    }


def _body(data: bytes) -> bytes:
    """A sealed document without its seal."""
    return data.partition(b"\n")[2].removesuffix(b"\n")


def _journal_entry() -> JournalEntry:
    seen = observation(source("in", 100), operator("a", {"in": 100}))
    return JournalEntry(0, "psps", seen, Proposal((Want("a", 2, "busy"),)), (), None, 1.0, Guards())


def _written_by_people(folder: Path) -> dict[str, Target]:
    def by_path(read: Callable[[str], object], ending: str) -> Callable[[bytes], object]:
        path = folder / f"input{ending}"

        def reading(data: bytes) -> object:
            path.write_bytes(data)
            return read(str(path))

        return reading

    def by_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
        return lambda data: read(data.decode("utf-8", "replace"))

    suite = files("elastream_lab.bench.suites").joinpath("shipped", "smoke.yaml").read_bytes()
    cluster = b"nodes:\n  - {cores: 4, speed: 1.0, memory_gb: 8}\nfailures:\n  - {machine: 0, at_s: 5, for_s: 2}\n"
    profile = files("elastream.simulator").joinpath("default_profile.json").read_bytes()
    return {
        "suite": Target(suite, by_text(lambda text: parse_suite("suite", text, "suite.yaml"))),
        "cluster": Target(cluster, by_path(load_cluster, ".yaml")),
        "profile": Target(profile[:100_000], by_path(load_profile, ".json")),
        "trace": Target(b"t_seconds,events\n0,5\n1,7\n2,9\n3,1\n", by_path(from_csv, ".csv")),
        "curve": Target(
            b"t_s,input,queued\n0,5,1\n1,7,2\n2,9,3\n", by_path(lambda path: read_curves(Path(path)), ".csv")
        ),
        "payload of names": Target(b"host,x\nexample.org,1\nexample.net,2\n", by_path(read_names, ".csv")),
        "payload of tweets": Target(
            b"created\ttext\n2020\thello\n2021\tworld\n",
            by_path(lambda path: read_tsv(path, ("created", "text")), ".tsv"),
        ),
        "policy": Target(b"static:replicas=3", by_text(make_policy)),
        "workload": Target(b"sine:low=10,high=90,period_s=60,seconds=120", by_text(lambda text: parse_workload(text))),
        "columns": Target(b"id long, name string, seen timestamp", by_text(parse_schema)),
    }


def _message() -> Target:
    piece = Appended("b", 1, Slice("h1-1.arrow", 0, 10, 0, SchemaId("s"), 0, 5))
    receipt = Receipt(7, [LaneReceipt("a", 0, consumed=5, processed=5, emitted=5, busy_s=0.01)], appended=[piece])

    def read(data: bytes) -> None:
        for frame in wire.FrameReader().feed(data):
            messages.decode_to_driver(frame)

    return Target(
        wire.framed(messages.encode(Receipts([receipt], ["h1-0.arrow"]))), read, (msgspec.DecodeError, wire.NotOurs)
    )
