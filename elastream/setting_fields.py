"""Settings declared once: a field with its type, default, bounds and text gives the keyword, the flag, the environment variable
and the row of the reference page.

    class QueueSettings(SettingsGroup):
        group = "queues"
        q_size: int | None = setting(None, least=1, none="no limit", flag="--q-size")
        \"\"\"The most tuples that may wait in one lane.\"\"\"
"""

import math
import os
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from elastream.errors import SettingError
from elastream.field_docs import field_texts

PREFIX = "ELASTREAM_"


class _Unset:
    """The value of a field that was not given: the environment or the default decides."""

    def __repr__(self) -> str:
        return "unset"


UNSET = _Unset()


def setting(
    default: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    none: str = "",
    flag: str | None = None,
    metavar: str | None = None,
) -> Any:
    """Declare a field of a `SettingsGroup`. The string below it is its text.

    `least` and `above` bound a number; `none` says what None means; `flag` is the option of commands, if there is one.
    """
    declared = {"default": default, "least": least, "above": above, "none": none, "flag": flag, "metavar": metavar}
    return field(default=UNSET, metadata=declared)


@dataclass(frozen=True)
class Option:
    """One setting, as it was declared."""

    group: str
    name: str
    kind: type
    """int, float or str."""

    choices: tuple[str, ...]
    """The words that it may be; empty: any number."""

    optional: bool
    """True when it may be None."""

    text: str
    default: Any
    least: float | None
    above: float | None
    none: str
    flag: str | None
    metavar: str | None

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"{PREFIX}{self.group.upper()}_{self.name.upper()}"

    @property
    def expected(self) -> str:
        """The values that it takes, in words."""
        if self.choices:
            return " or ".join(map(repr, self.choices))
        bound = f"{self.least:,} or more" if self.least is not None else f"more than {self.above:g}"
        return f"a whole number, {bound}" if self.kind is int else f"a number, {bound}"

    def check(self, value: Any) -> None:
        """Refuse a value that it cannot have."""
        if value is None and self.optional:
            return
        number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
        if self.choices:
            right = value in self.choices
        elif self.kind is int:
            right = number and isinstance(value, int) and value >= (self.least or 0)
        else:
            right = (
                number and (self.least is None or value >= self.least) and (self.above is None or value > self.above)
            )
        if not right:
            raise SettingError(f"{self.name} must be {self.expected}, got {value!r}{self._none_means()}")

    def from_environment(self) -> Any:
        """The value of the environment variable, else the default."""
        word = os.environ.get(self.variable)
        if word is None:
            return self.default
        if self.optional and word.lower() == "none":
            return None
        try:
            value = word if self.choices else self.kind(word)
            self.check(value)
        except (ValueError, SettingError):
            or_none = " or none" if self.optional else ""
            raise SettingError(f"{self.variable}: expected {self.expected}{or_none}, got {word!r}") from None
        return value

    def _none_means(self) -> str:
        return f"; None means {self.none}" if self.optional and self.none else ""


class SettingsGroup:
    """Settings that belong together. Subclasses are frozen dataclasses whose fields are made by `setting`."""

    group: ClassVar[str]

    def __post_init__(self) -> None:
        for option in options_of(type(self)):
            value = getattr(self, option.name)
            if value is UNSET:
                object.__setattr__(self, option.name, option.from_environment())
            else:
                option.check(value)


def options_of(group: type[SettingsGroup]) -> tuple[Option, ...]:
    """The settings of a group, in the order of their declaration."""
    kind: Any = group
    return _options_of(kind)


@cache
def _options_of(group: Any) -> tuple[Option, ...]:
    hints, texts = get_type_hints(group), field_texts(group)
    options = []
    for declared in fields(group):
        hint = hints[declared.name]
        optional = isinstance(hint, UnionType) and type(None) in get_args(hint)
        kind = next(part for part in get_args(hint) if part is not type(None)) if optional else hint
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        options.append(
            Option(
                group.group,
                declared.name,
                str if choices else kind,
                choices,
                optional,
                texts.get(declared.name, ""),
                **declared.metadata,
            )
        )
    return tuple(options)


def check_environment(options: tuple[Option, ...]) -> None:
    """Refuse variables that look like settings and are none: a setting that is misspelt would have no effect."""
    known = [option.variable for option in options]
    prefixes = tuple({f"{PREFIX}{option.group.upper()}_" for option in options})
    for variable in sorted(set(os.environ) - set(known)):
        if not variable.startswith(PREFIX):
            continue
        close = get_close_matches(variable, known, n=1, cutoff=0.85)
        if close or variable.startswith(prefixes):
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise SettingError(f"{variable}: no setting of this name; {hint}")
