"""Benefit models in a directory, a file per application and input rate, so that tomorrow's run begins with today's.

The only part of the policies that reads and writes. Any directory is a library; a run's base is one, too. A file is Arrow: a row
per sample, and a JSON document in its metadata that says what it belongs to, with a checksum of all.
"""

import json
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa

from elastream.control import Policy
from elastream.errors import Damaged, SettingError
from elastream.lanes import Store
from elastream.policies.autrascale.models import BenefitModel, Sample

log = logging.getLogger("elastream.policies")

FOLDER = "models"
ENDING = ".arrow"
FORMAT = "elastream-benefit-model"
VERSION = 1
KEY = b"elastream"


class ModelLibrary:
    """Reads and writes the models of a directory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[str, BenefitModel] = {}

    def __str__(self) -> str:
        return str(self._store)

    def names(self) -> list[str]:
        """Of all models, as `APPLICATION@RATE`, by application and rate."""
        found = [name.removesuffix(ENDING) for name in self._store.names(FOLDER) if name.endswith(ENDING)]
        return sorted((unquote(name) for name in found), key=_order)

    def read(self, name: str) -> BenefitModel:
        if name not in self.names():
            known = ", ".join(self.names()) or "none"
            raise SettingError(f"models: no model {name!r} in {self._store}; there are: {known}")
        file = _file(name)
        return decode(self._store.read(file), f"{self._store}/{file}")

    def of(self, app: str) -> tuple[BenefitModel, ...]:
        """All models of an application, by rate. One that is damaged is left out and named: it is learned again."""
        models = []
        for name in self.names():
            if name.rpartition("@")[0] == app:
                try:
                    models.append(self.read(name))
                except Damaged as error:
                    log.warning("%s", error)
        return tuple(models)

    def write(self, app: str, models: tuple[BenefitModel, ...]) -> None:
        """Those that have changed since they were written here last."""
        for model in models:
            name = name_of(app, model)
            if self._written.get(name) != model:
                self._store.write(_file(name), encode(model))
                self._written[name] = model

    def remove(self, name: str) -> None:
        self.read(name)
        self._store.delete([_file(name)])


def remember(policy: Policy, app: str, uris: Sequence[str]) -> Callable[[object], None] | None:
    """Give a policy that learns the models in these directories; a later one wins. None for any other policy.

    What comes back is called after every decision, and keeps in all of them what the policy has learned since.
    """
    if policy.models is None:
        return None
    libraries = [ModelLibrary(Store(uri)) for uri in uris]
    for library in libraries:
        policy.recall(library.of(app))

    def keep(decided: object) -> None:
        for library in libraries:
            try:
                library.write(app, policy.models or ())
            except OSError as error:
                log.warning("models: %s could not be written: %s; the stream goes on", library, error)

    return keep


def name_of(app: str, model: BenefitModel) -> str:
    return f"{app}@{model.per_second:.6g}"


def encode(model: BenefitModel) -> bytes:
    """As an Arrow file that any reader of Arrow opens."""
    columns: dict[str, list[float]] = {
        f"replicas of {name}": [sample.sizes[place] for sample in model.samples]
        for place, name in enumerate(model.operators)
    }
    columns["latency_s"] = [sample.latency_s for sample in model.samples]
    columns["per_second"] = [sample.per_second for sample in model.samples]
    types = [pa.int64()] * len(model.operators) + [pa.float64(), pa.float64()]
    arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "operators": list(model.operators),
        "per_second": model.per_second,
        "base": list(model.base),
        "most": list(model.most),
    }
    document["crc32"] = _checksum(document, arrays)
    table = pa.table(arrays, names=list(columns)).replace_schema_metadata({KEY: json.dumps(document).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode(data: bytes, where: str) -> BenefitModel:
    """The model, or `Damaged` with the file's name and what to do."""
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        document = json.loads((table.schema.metadata or {})[KEY])
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            raise Damaged(
                f"{where}: expected {FORMAT} of version {VERSION}, got {document['format']} of version "
                f"{document['version']}; remove it, and it is learned again"
            )
        arrays = [column.combine_chunks() for column in table.columns]
        if document.pop("crc32") != _checksum(document, arrays):
            raise ValueError
        *sizes, latencies_s, rates = (array.to_pylist() for array in arrays)
        samples = [Sample(tuple(row[:-2]), row[-2], row[-1]) for row in zip(*sizes, latencies_s, rates, strict=True)]
        operators, base, most = (tuple(document[key]) for key in ("operators", "base", "most"))
        if not len(operators) == len(base) == len(most) == len(sizes):
            raise ValueError
        return BenefitModel(operators, float(document["per_second"]), base, most, tuple(samples))
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException):
        raise Damaged(f"{where}: is not a whole {FORMAT}; remove it, and it is learned again") from None


def _checksum(document: dict[str, Any], arrays: list[pa.Array]) -> int:
    checksum = zlib.crc32(json.dumps(document, sort_keys=True).encode())
    for array in arrays:
        checksum = zlib.crc32(np.asarray(array.to_numpy(zero_copy_only=False)).tobytes(), checksum)
    return checksum


def _file(name: str) -> str:
    return f"{FOLDER}/{quote(name, safe='@')}{ENDING}"


def _order(name: str) -> tuple[str, float]:
    app, _, rate = name.rpartition("@")
    try:
        return app, float(rate)
    except ValueError:
        return name, 0.0
