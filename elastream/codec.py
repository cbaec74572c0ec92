"""The codec of everything that is kept or shown as JSON: dataclasses in, dataclasses out, checked by msgspec.

Python's own `json` reads and writes the text, so that NaN and infinity come back as they were. Fields that a type does not
have are ignored, so that older versions read newer files, unless `known_only` refuses them.
"""

import json
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec

from elastream.errors import Damaged, ElastreamError

T = TypeVar("T")

MAX_SHOWN = 60
"""Characters of a wrong value that a message shows."""

_PLAIN = (str, int, float, bool, type(None))
_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
_PLACE = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")


def encode(value: object, indent: int | None = None) -> bytes:
    """JSON, in one line unless `indent` is given. Numbers and arrays of numpy become plain ones."""
    return json.dumps(_builtins(value), indent=indent, separators=None if indent else (",", ":")).encode()


def to_plain(value: object) -> Any:
    """The dicts, lists, texts and numbers that a reader of the JSON gets."""
    return json.loads(encode(value))


def decode(
    data: bytes | str,
    kind: type[T],
    where: str,
    *,
    error: type[ElastreamError] = Damaged,
    fix: str = "",
    known_only: bool = False,
) -> T:
    """A `kind` from JSON. `where` begins the message of the error, `fix` ends it."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise error(f"{where}: expected JSON: {_one_line(problem)}{fix}") from None
    return convert(document, kind, where, error=error, fix=fix, known_only=known_only)


def convert(
    document: object,
    kind: type[T],
    where: str,
    *,
    error: type[ElastreamError] = Damaged,
    fix: str = "",
    known_only: bool = False,
) -> T:
    """The same from a document that is read already, from YAML say."""
    try:
        made = msgspec.convert(document, kind, str_keys=True)
    except msgspec.ValidationError as problem:
        raise error(f"{where}: {_explained(problem, document)}{fix}") from None
    except ElastreamError as problem:
        # A type that checks its own values.
        raise (problem if isinstance(problem, error) else error(f"{where}: {problem}{fix}")) from None
    _complete(made)
    unknown = _unknown(document, made) if known_only else None
    if unknown is not None:
        raise error(f"{where}: {unknown}{fix}")
    return made


def checked(value: T, where: str, *, error: type[ElastreamError] = Damaged) -> T:
    """A copy of a dataclass in which every field has its declared type: for values that code of users made."""
    try:
        document = _builtins(value)
    except (TypeError, ValueError, RecursionError) as problem:
        raise error(f"{where}: {_one_line(problem)}") from None
    return convert(document, type(value), where, error=error)


def _builtins(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_without_numpy)


def _without_numpy(value: object) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, deque):
        return list(value)
    raise TypeError(f"expected a value that JSON has, got {type(value).__name__}")


def _complete(made: object) -> None:
    """Set fields that a document left out: msgspec leaves them to the class, where `vars` and the encoder do not see them."""
    kind: type[Any] = type(made)
    if kind in _PLAIN:
        return
    if isinstance(made, list | tuple):
        inner: Iterable[object] = made
    elif isinstance(made, dict):
        inner = made.values()
    elif is_dataclass(kind):
        attributes = vars(made)
        for name in _field_names(kind):
            if name not in attributes:
                object.__setattr__(made, name, getattr(made, name))
        inner = attributes.values()
    else:
        return
    for value in inner:
        _complete(value)


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _unknown(document: object, made: object) -> str | None:
    """The first key of a document that the dataclass made of it does not have, in words."""
    kind: type[Any] = type(made)
    if isinstance(document, dict) and is_dataclass(kind):
        names = _field_names(kind)
        strange = next((key for key in document if key not in names), None)
        if strange is not None:
            return f"unknown key {strange!r}; there are {', '.join(names)}"
        pairs = [(f"{key}: ", value, getattr(made, key)) for key, value in document.items()]
    elif isinstance(document, list | tuple) and isinstance(made, list | tuple):
        pairs = [("", *pair) for pair in zip(document, made, strict=True)]
    else:
        return None
    return next((f"{key}{said}" for key, *pair in pairs if (said := _unknown(*pair))), None)


def _explained(problem: msgspec.ValidationError, document: object) -> str:
    """The message of msgspec, with the place first and the value that was given."""
    said = str(problem)
    place = _PLACE.search(said)
    text, path = (said[: place.start()], place["path"]) if place else (said, "")
    mismatch = _MISMATCH.fullmatch(text)
    if mismatch:
        text = f"expected {mismatch['expected']}, got {_value_at(document, path, mismatch['got'])}"
    else:
        text = text[:1].lower() + text[1:].replace("`", "")
    return f"{path.removeprefix('.')}: {text}" if path else text


def _value_at(document: object, path: str, otherwise: str) -> str:
    """The value at a path such as `.wants[0].replicas`; the name of its type where the path does not lead to one value."""
    value: Any = document
    steps = list(_STEP.finditer(path))
    if "".join(step[0] for step in steps) != path:
        return otherwise
    for step in steps:
        try:
            value = value[step["name"]] if step["name"] else value[int(step["index"])]
        except (LookupError, TypeError):
            return otherwise
    shown = _one_line(repr(value))
    return shown if len(shown) <= MAX_SHOWN else otherwise


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
