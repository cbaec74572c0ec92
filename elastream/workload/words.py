"""Parameters in words: `low=100,high=900` and the parameters that a function or a class takes enter, their values leave."""

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, get_type_hints

from elastream.errors import SettingError


def read_parameters(where: str, text: str, make: Callable[..., Any]) -> dict[str, Any]:
    """The values in the text, each of its type; all that have no default are there, and none that is unknown.

    Numbers in a row are written with a slash between them: `rates=100/500/100`.
    """
    parameters = inspect.signature(make).parameters
    pairs = read_pairs(where, text, parameters)
    missing = [name for name, it in parameters.items() if it.default is it.empty and name not in pairs]
    if missing:
        raise SettingError(
            f"{where}: expected {', '.join(missing)} too; add {','.join(f'{name}=...' for name in missing)}"
        )
    kinds = get_type_hints(make.__init__ if inspect.isclass(make) else make)
    return {name: read_value(f"{where}: {name}", word, kinds[name]) for name, word in pairs.items()}


def read_pairs(where: str, text: str, known: Iterable[str]) -> dict[str, str]:
    """`a=1,b=2`, with nothing but known names, and each once."""
    known = list(known)
    pairs: dict[str, str] = {}
    for word in text.split(",") if text else []:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not value:
            raise SettingError(f"{where}: expected name=number, got {word!r}; for example {known[0]}=60")
        if name not in known:
            raise SettingError(f"{where}: there is no {name!r}; {suggestion(name, known)}")
        if name in pairs:
            raise SettingError(f"{where}: {name} is said twice, {pairs[name]!r} and {value!r}; leave one out")
        pairs[name] = value
    return pairs


def read_value(where: str, word: str, kind: Any) -> Any:
    """One value of this type: int, float, float or None, or a sequence of floats."""
    expected = "numbers like 1/2/3"
    try:
        if kind is int:
            expected = "a whole number"
            return int(word)
        if kind in (float, float | None):
            expected = "a number"
            return float(word)
        return tuple(float(part) for part in word.split("/"))
    except ValueError:
        raise SettingError(f"{where} must be {expected}, got {word!r}") from None


def suggestion(word: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    known = list(known)
    close = get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
