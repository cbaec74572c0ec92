"""Columns from Spark's StructType and from dataclasses: both enter, an Arrow schema leaves. Spark is not imported."""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from elastream.errors import TopologyError

_PYTHON: dict[type, pa.DataType] = {
    str: pa.string(),
    bytes: pa.binary(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    datetime: pa.timestamp("us", tz="UTC"),
    date: pa.date32(),
}

_LISTS = (list, Sequence)
_MAPS = (dict, Mapping)


def is_struct_type(declared: object) -> bool:
    """True for Spark's StructType."""
    return any(kind.__name__ == "StructType" and "pyspark" in kind.__module__ for kind in type(declared).__mro__)


def schema_of_struct_type(declared: Any, parse_type: Callable[[str], pa.DataType]) -> pa.Schema:
    """The columns of a StructType. `parse_type` reads a type that has no parts, as Spark writes it."""

    def arrow(kind: Any, where: str) -> pa.DataType:
        if is_struct_type(kind):
            return pa.struct(
                [pa.field(part.name, arrow(part.dataType, f"{where}.{part.name}")) for part in kind.fields]
            )
        if kind.typeName() == "array":
            return pa.list_(arrow(kind.elementType, f"{where}[]"))
        if kind.typeName() == "map":
            return pa.map_(arrow(kind.keyType, f"{where} keys"), arrow(kind.valueType, f"{where} values"))
        try:
            return parse_type(kind.simpleString())
        except TopologyError:
            raise TopologyError(
                f"schema: column {where!r} of the StructType is {kind.simpleString()}, which a lane cannot hold; cast it"
            ) from None

    return pa.schema([pa.field(part.name, arrow(part.dataType, part.name)) for part in declared.fields])


def schema_of_dataclass(declared: type) -> pa.Schema:
    """The fields of a dataclass. `Annotated[int, pyarrow.int32()]` names a type that Python does not have."""
    return pa.schema(_fields(declared))


def _fields(declared: type) -> list[pa.Field]:
    try:
        hints = get_type_hints(declared, include_extras=True)
    except NameError as error:
        raise TopologyError(
            f"schema {declared.__name__}: {error}; declare the dataclass where its types are known"
        ) from None
    return [pa.field(part.name, _arrow(hints[part.name], declared, part.name)) for part in fields(declared)]


def _arrow(hint: Any, declared: type, name: str) -> pa.DataType:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        exact = [part for part in parts[1:] if isinstance(part, pa.DataType)]
        return exact[0] if exact else _arrow(parts[0], declared, name)
    if origin in (Union, types.UnionType):
        # All columns may be null.
        some = [part for part in parts if part is not type(None)]
        if len(some) == 1:
            return _arrow(some[0], declared, name)
    if origin in _LISTS and len(parts) == 1:
        return pa.list_(_arrow(parts[0], declared, name))
    if origin in _MAPS and len(parts) == 2:
        return pa.map_(_arrow(parts[0], declared, name), _arrow(parts[1], declared, name))
    if isinstance(hint, type) and is_dataclass(hint):
        return pa.struct(_fields(hint))
    if isinstance(hint, type) and hint in _PYTHON:
        return _PYTHON[hint]
    known = ", ".join(kind.__name__ for kind in _PYTHON)
    raise TopologyError(
        f"schema {declared.__name__}: field {name!r} is {hint}; expected {known}, list[...], dict[..., ...], a dataclass, "
        "any of them or None, or Annotated[..., pyarrow.int32()]"
    )
