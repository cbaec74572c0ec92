"""Docstrings of fields for `help()`: Python does not keep the string below a field, so it is read from the source."""

import ast
import inspect
import textwrap
from dataclasses import MISSING, fields
from typing import TypeVar

T = TypeVar("T")


def field_texts(kind: type) -> dict[str, str]:
    """The string below each field of a class; nothing if its source is not there."""
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, SyntaxError):
        return {}
    assert isinstance(source, ast.ClassDef)
    texts: dict[str, str] = {}
    for declared, below in zip(source.body, source.body[1:], strict=False):
        if (
            isinstance(declared, ast.AnnAssign)
            and isinstance(declared.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            texts[declared.target.id] = " ".join(str(below.value.value).split())
    return texts


def explained(kind: type[T]) -> type[T]:
    """Add all fields of a dataclass, each with its default and the string below it, to the docstring of the class."""
    texts = field_texts(kind)
    if not texts:
        return kind
    lines = [inspect.cleandoc(kind.__doc__ or ""), ""]
    for field in fields(kind):  # type: ignore[arg-type]
        value = field.metadata.get("default", field.default)
        default = "" if value is MISSING else f" = {value!r}"
        text = textwrap.fill(texts.get(field.name, ""), 110, initial_indent="    ", subsequent_indent="    ")
        lines += [f"{field.name}{default}", text]
    kind.__doc__ = "\n".join(lines)
    return kind
