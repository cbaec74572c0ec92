"""Column declarations: Spark DDL, an Arrow schema, a StructType or a dataclass enters, an Arrow schema leaves."""

import re
from dataclasses import is_dataclass
from typing import Any, NoReturn

import pyarrow as pa

from elastream.errors import TopologyError
from elastream.topology.schema_types import is_struct_type, schema_of_dataclass, schema_of_struct_type

SchemaLike = Any
"""Columns as users declare them: `"id long, name string"`, a `pyarrow.Schema`, Spark's `StructType`, or a dataclass."""

DUE = "_due"
"""The column every tuple carries: the time at which it was due to enter the topology."""

DUE_TYPE = pa.timestamp("us", tz="UTC")

_ATOMS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*|\d+|[<>,:()])")


def parse_schema(declared: SchemaLike) -> pa.Schema:
    """Turn `"id long, words array<string>"`, a StructType or a dataclass into an Arrow schema; one of these stays as it is."""
    schema = _schema(declared)
    names = schema.names
    if len(set(names)) < len(names):
        raise TopologyError(f"schema {names}: each column once; rename the second one")
    for field in schema:
        if pa.types.is_dictionary(field.type):
            raise TopologyError(f"schema {names}: {field.name!r} is dictionary-encoded; declare its values' type")
    if DUE in names:
        raise TopologyError(f"schema {names}: {DUE!r} is kept for the time a tuple was due; rename the column")
    return schema


def _schema(declared: SchemaLike) -> pa.Schema:
    if isinstance(declared, pa.Schema):
        return declared
    if is_struct_type(declared):
        return schema_of_struct_type(declared, lambda text: _Ddl(text).one_type())
    if isinstance(declared, type) and is_dataclass(declared):
        return schema_of_dataclass(declared)
    return _Ddl(declared).columns()


def stored(schema: pa.Schema) -> pa.Schema:
    """The schema as it waits in a lane: the declared columns, then the due time."""
    return schema.append(pa.field(DUE, DUE_TYPE))


class _Ddl:
    """A recursive-descent reader of Spark's column declarations."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        if not isinstance(text, str):
            self._fail("text, a pyarrow.Schema, a StructType or a dataclass")
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        if "".join(self._tokens) != re.sub(r"\s+", "", text):
            self._fail("letters, digits and < > , : ( )")

    def columns(self) -> pa.Schema:
        fields = [self._field(separator="")]
        while self._peek() == ",":
            self._next()
            fields.append(self._field(separator=""))
        if self._peek():
            self._fail("a comma or the end")
        return pa.schema(fields)

    def one_type(self) -> pa.DataType:
        kind = self._type()
        if self._peek():
            self._fail("the end")
        return kind

    def _field(self, separator: str) -> pa.Field:
        name = self._next()
        if not re.match(r"[A-Za-z_]", name):
            self._fail("a column name")
        if separator:
            self._expect(separator)
        return pa.field(name, self._type())

    def _type(self) -> pa.DataType:
        word = self._next().lower()
        if word in _ATOMS:
            return _ATOMS[word]
        if word == "decimal":
            self._expect("(")
            precision = self._number()
            self._expect(",")
            scale = self._number()
            self._expect(")")
            if not 1 <= precision <= 38 or scale > precision:
                self._fail("decimal(precision, scale) with a precision of 1..38 and no larger scale")
            return pa.decimal128(precision, scale)
        if word == "array":
            self._expect("<")
            item = self._type()
            self._expect(">")
            return pa.list_(item)
        if word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, value)
        if word == "struct":
            self._expect("<")
            fields = [self._field(separator=":")]
            while self._peek() == ",":
                self._next()
                fields.append(self._field(separator=":"))
            self._expect(">")
            return pa.struct(fields)
        return self._fail(f"a type such as {', '.join(sorted(_ATOMS))}, decimal, array, map, struct; got {word!r}")

    def _number(self) -> int:
        word = self._next()
        if not word.isdigit():
            self._fail("a number")
        return int(word)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        if not word:
            self._fail("more; it ends too early")
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._next() != word:
            self._fail(f"{word!r}")

    def _fail(self, wanted: str) -> NoReturn:
        raise TopologyError(f"schema {self._text!r}: expected {wanted}; write it as in 'id long, name string'")
