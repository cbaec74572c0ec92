"""Functions that cannot be sent to hosts: which object of which operator it is that cannot be pickled."""

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elastream.errors import SettingError
from elastream.topology import Operator

Dumps = Callable[[object], bytes]

DEEPEST = 8
"""How far objects are followed into one another."""


def check_pickles(operator: Operator, dumps: Dumps) -> None:
    """Raise in one line when what travels of an operator cannot be pickled."""
    error = _error_of(operator, dumps)
    if error is None:
        return
    parts: dict[str, Any] = {"its function": operator.function, "its source": operator.source}
    if operator.keyed is not None:
        parts |= {f"its {name}": getattr(operator.keyed, name) for name in ("merge", "on_timer")}
    for part, value in parts.items():
        if value is not None and (reason := _error_of(value, dumps)) is not None:
            name, culprit, error = _innermost(part, value, dumps, reason)
            raise SettingError(
                f"{operator.kind} {operator.name!r}: {part} cannot be sent to hosts, because {name} "
                f"({type(culprit).__module__}.{type(culprit).__qualname__}) cannot be pickled: {_line(error)}; "
                "make it inside of the function, once per process with functools.cache"
            ) from None
    raise SettingError(f"{operator.kind} {operator.name!r}: it cannot be sent to hosts: {_line(error)}") from None


def _innermost(name: str, value: Any, dumps: Dumps, error: Exception) -> tuple[str, Any, Exception]:
    """The object inside of this one that cannot be pickled, its name, and why."""
    for _ in range(DEEPEST):
        for inner_name, inner in _parts_of(value):
            reason = _error_of(inner, dumps)
            if reason is not None:
                name, value, error = inner_name, inner, reason
                break
        else:
            break
    return name, value, error


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Objects that an object takes along, with their names."""
    if isinstance(value, functools.partial):
        yield "the function of a partial", value.func
        yield from ((f"argument {place}", item) for place, item in enumerate(value.args))
        yield from ((f"argument {name!r}", item) for name, item in value.keywords.items())
    elif isinstance(value, types.MethodType):
        yield "its object", value.__self__
    elif isinstance(value, types.FunctionType):
        code = value.__code__
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            try:
                yield f"variable {name!r}", cell.cell_contents
            except ValueError:
                continue
        yield from (
            (f"global {name!r}", value.__globals__[name]) for name in _names_in(code) if name in value.__globals__
        )
        yield from (("a default value", item) for item in value.__defaults__ or ())
    elif isinstance(value, Mapping):
        yield from ((f"item {key!r}", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"item {place}", item) for place, item in enumerate(value))
    elif hasattr(value, "__dict__") and not isinstance(value, type | types.ModuleType):
        yield from ((f"attribute {name!r}", item) for name, item in vars(value).items())


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Names that a function, and functions inside of it, may look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _error_of(value: object, dumps: Dumps) -> Exception | None:
    try:
        dumps(value)
    except Exception as error:
        return error
    return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
