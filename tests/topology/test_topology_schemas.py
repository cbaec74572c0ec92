"""Schemas: what a declaration becomes, and what is said of a wrong one."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Optional

import pyarrow as pa
import pytest
from pyspark.sql import types
from topologies import message_of, unchanged

from elastream import Topology, sources
from elastream.topology import DUE, parse_schema, stored
from elastream.workload import constant


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("id long", pa.schema([("id", pa.int64())])),
        (
            "a string, b binary, c boolean, d byte, e tinyint, f short, g smallint, h int, i integer, j long, k bigint",
            pa.schema(
                [
                    ("a", pa.string()),
                    ("b", pa.binary()),
                    ("c", pa.bool_()),
                    ("d", pa.int8()),
                    ("e", pa.int8()),
                    ("f", pa.int16()),
                    ("g", pa.int16()),
                    ("h", pa.int32()),
                    ("i", pa.int32()),
                    ("j", pa.int64()),
                    ("k", pa.int64()),
                ]
            ),
        ),
        (
            "x FLOAT,y Double , d date\n, t timestamp",
            pa.schema(
                [("x", pa.float32()), ("y", pa.float64()), ("d", pa.date32()), ("t", pa.timestamp("us", tz="UTC"))]
            ),
        ),
        ("price decimal(12, 2)", pa.schema([("price", pa.decimal128(12, 2))])),
        ("words array<string>", pa.schema([("words", pa.list_(pa.string()))])),
        ("deep array<array<array<int>>>", pa.schema([("deep", pa.list_(pa.list_(pa.list_(pa.int32()))))])),
        (
            "m map<string, array<struct<a: int, b: map<long, decimal(5,1)>>>>, last boolean",
            pa.schema(
                [
                    (
                        "m",
                        pa.map_(
                            pa.string(),
                            pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.int64(), pa.decimal128(5, 1)))])),
                        ),
                    ),
                    ("last", pa.bool_()),
                ]
            ),
        ),
    ],
)
def test_a_declaration_becomes_the_arrow_schema_it_says(text: str, wanted: pa.Schema) -> None:
    assert parse_schema(text) == wanted


def test_an_arrow_schema_stays_what_it_is() -> None:
    schema = pa.schema([("id", pa.uint8()), ("t", pa.time64("ns"))])
    assert parse_schema(schema) is schema


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "it ends too early"),
        ("id", "it ends too early"),
        ("id long,", "it ends too early"),
        ("id lang", "got 'lang'"),
        ("id long name string", "a comma or the end"),
        ("1 long", "a column name"),
        ("`my id` long", "letters, digits"),
        ("words array string", "'<'"),
        ("words array<string", "it ends too early"),
        ("m map<string>", "','"),
        ("s struct<a int>", "':'"),
        ("price decimal", "it ends too early"),
        ("price decimal(a, 2)", "a number"),
        ("price decimal(10, 2", "it ends too early"),
        ("price decimal(40, 2)", "38"),
        ("id long)", "a comma or the end"),
    ],
)
def test_a_wrong_declaration_is_shown_with_what_was_expected_there(text: str, wanted: str) -> None:
    message = message_of(lambda t: t.map("score", unchanged, after="read", schema=text))
    assert message.startswith(f"schema {text!r}: ")
    assert wanted in message
    assert message.endswith("write it as in 'id long, name string'")


def test_a_schema_that_is_neither_text_nor_arrow_is_refused() -> None:
    message = message_of(lambda t: t.map("score", unchanged, after="read", schema=["id"]))
    assert "['id']" in message
    assert "'id long, name string'" in message


@pytest.mark.parametrize(
    "declared", ["id long, word string, id int", pa.schema([("id", pa.int8()), ("id", pa.int8())])]
)
def test_a_column_declared_twice_is_refused(declared: str | pa.Schema) -> None:
    message = message_of(lambda t: t.map("score", unchanged, after="read", schema=declared))
    assert "each column once; rename the second one" in message


@pytest.mark.parametrize("declared", ["id long, _due long", pa.schema([("_due", pa.int8())])])
def test_the_column_of_due_times_is_reserved(declared: str | pa.Schema) -> None:
    message = message_of(lambda t: t.map("score", unchanged, after="read", schema=declared))
    assert "'_due' is kept for the time a tuple was due; rename the column" in message


def test_tuples_wait_with_their_due_time_behind_the_declared_columns() -> None:
    assert stored(parse_schema("id long")) == pa.schema([("id", pa.int64()), (DUE, pa.timestamp("us", tz="UTC"))])


@dataclass
class Place:
    name: str
    at: tuple[float, float] | None = field(default=None, init=False)


@dataclass
class Point:
    x: float
    y: Annotated[float, pa.float32()]


@dataclass
class Click:
    id: int
    page: str
    ok: bool
    raw: bytes | None
    seen: datetime
    day: date
    words: list[str]
    counts: dict[str, int]
    point: Optional[Point]  # noqa: UP045
    small: Annotated[int, pa.int16()]


POINT = pa.struct([("x", pa.float64()), ("y", pa.float32())])
CLICK = pa.schema(
    [
        ("id", pa.int64()),
        ("page", pa.string()),
        ("ok", pa.bool_()),
        ("raw", pa.binary()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("words", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("point", POINT),
        ("small", pa.int16()),
    ]
)


def test_a_dataclass_declares_its_fields() -> None:
    assert parse_schema(Click) == CLICK
    made = Topology("flow").source("in", sources.replay(constant(1, 1))).map("a", unchanged, schema=Click).topology
    assert made.output("out", after="a").topology.build()["a"].schema == CLICK
    said = message_of(lambda topology: parse_schema(Place))
    assert said.startswith("schema Place: field 'at' is tuple[float, float]") and "list[...]" in said
    said = message_of(lambda topology: parse_schema(Point(1.0, 2.0)))
    assert "expected text, a pyarrow.Schema, a StructType or a dataclass" in said


def test_a_struct_type_of_spark_declares_its_columns_and_starts_no_spark() -> None:
    declared = types.StructType(
        [
            types.StructField("id", types.LongType(), nullable=False),
            types.StructField("a name", types.StringType()),
            types.StructField("price", types.DecimalType(12, 2)),
            types.StructField("seen", types.TimestampType()),
            types.StructField("tags", types.MapType(types.StringType(), types.ArrayType(types.ShortType()))),
            types.StructField("at", types.StructType([types.StructField("x y", types.DoubleType())])),
        ]
    )
    assert parse_schema(declared) == pa.schema(
        [
            ("id", pa.int64()),
            ("a name", pa.string()),
            ("price", pa.decimal128(12, 2)),
            ("seen", pa.timestamp("us", tz="UTC")),
            ("tags", pa.map_(pa.string(), pa.list_(pa.int16()))),
            ("at", pa.struct([("x y", pa.float64())])),
        ]
    )
    declared.add(types.StructField("plain", types.TimestampNTZType()))
    said = message_of(lambda topology: parse_schema(declared))
    assert said == "schema: column 'plain' of the StructType is timestamp_ntz, which a lane cannot hold; cast it"
