"""The codec: dataclasses to JSON and back, and one line that says what is wrong with a document."""

import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from elastream.codec import checked, convert, decode, encode, to_plain
from elastream.errors import Damaged, SettingError
from elastream.fleet import Level


class Point(NamedTuple):
    t_s: float
    counts: dict[int, int]


@dataclass(frozen=True)
class Inner:
    size: int
    level: Level = Level.HOST


@dataclass(frozen=True)
class Outer:
    name: str
    inner: tuple[Inner, ...] = ()
    need: float | None = None
    points: tuple[Point, ...] = ()
    by_name: dict[str, Inner] = field(default_factory=dict)


FULL = Outer(
    "é \ud800 </script>",
    (Inner(10**30), Inner(-1, Level.SEAT)),
    float("inf"),
    (Point(0.1, {3: 4}),),
    {"a.b": Inner(2)},
)


def test_a_value_comes_back_as_it_was() -> None:
    assert decode(encode(FULL), Outer, "here") == FULL
    assert decode(encode(FULL, indent=2), Outer, "here") == FULL
    again = decode(encode(Outer("x", need=float("nan"))), Outer, "here")
    assert again.need is not None and math.isnan(again.need)


def test_fields_that_a_document_leaves_out_are_set_everywhere() -> None:
    made = decode('{"name": "x", "inner": [{"size": 1}], "by_name": {"a": {"size": 2}}}', Outer, "here")
    assert vars(made)["need"] is None and vars(made.inner[0])["level"] is Level.HOST
    assert to_plain(made)["by_name"] == {"a": {"size": 2, "level": "host"}}


def test_a_named_tuple_is_a_list_and_a_level_is_its_name() -> None:
    plain = to_plain(FULL)
    assert plain["points"] == [[0.1, {"3": 4}]]
    assert [inner["level"] for inner in plain["inner"]] == ["host", "seat"]


def test_numbers_of_numpy_become_plain_ones() -> None:
    given: dict[str, Any] = {"a": np.float64(1.5), "b": np.int64(3), "c": np.array([[1.0, 2.0]]), "d": deque([1])}
    assert json.loads(encode(given)) == {"a": 1.5, "b": 3, "c": [[1.0, 2.0]], "d": [1]}
    made = checked(Outer("x", (Inner(np.int64(3)),), np.float64(0.5)), "here")  # type: ignore[arg-type]
    assert (type(made.inner[0].size), type(made.need)) == (int, float)
    with pytest.raises(TypeError, match="a value that JSON has, got object"):
        encode({"a": object()})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "file x: expected JSON: Expecting property name"),
        ("[" * 100_000, "file x: expected JSON: "),
        ("[1]", "file x: expected object, got [1]; mend it"),
        ("{}", "file x: object missing required field name; mend it"),
        ('{"name": 3}', "file x: name: expected str, got 3; mend it"),
        (
            '{"name": "x", "inner": [{"size": 1}, {"size": "1"}]}',
            "file x: inner[1].size: expected int, got '1'; mend it",
        ),
        ('{"name": "x", "inner": [{"size": true}]}', "inner[0].size: expected int, got True"),
        ('{"name": "x", "inner": [{"size": 1.5}]}', "inner[0].size: expected int, got 1.5"),
        ('{"name": "x", "inner": [{"size": 1, "level": "rack"}]}', "inner[0].level: invalid enum value 'rack'"),
        ('{"name": "x", "need": "' + "9" * 1000 + '"}', "need: expected float | null, got str; mend it"),
        ('{"name": "x", "by_name": {"a": {"size": null}}}', "by_name[...].size: expected int, got null"),
        ('{"name": "x", "points": [[1.0]]}', "points[0]: expected array of length 2, got 1"),
        ('{"name": "x", "need": ' + "9" * 400 + "}", "need: number out of range"),
    ],
)
def test_a_wrong_document_is_refused_in_one_line_with_the_place_and_the_value(text: str, said: str) -> None:
    with pytest.raises(SettingError) as refused:
        decode(text, Outer, "file x", error=SettingError, fix="; mend it")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_keys_that_are_not_known_are_ignored_or_refused() -> None:
    document = {"name": "x", "inner": [{"size": 1, "sise": 2}], "by_name": {"sise": {"size": 3}}}
    assert convert(document, Outer, "here").inner == (Inner(1),)
    with pytest.raises(Damaged, match="here: inner: unknown key 'sise'; there are size, level"):
        convert(document, Outer, "here", known_only=True)


def test_a_value_made_by_users_code_is_checked_field_by_field() -> None:
    with pytest.raises(SettingError, match=r"policy: inner\[0\]\.size: expected int, got 2\.5"):
        checked(Outer("x", (Inner(2.5),)), "policy", error=SettingError)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="policy: expected a value that JSON has, got object"):
        checked(Outer("x", (object(),)), "policy", error=SettingError)  # type: ignore[arg-type]
