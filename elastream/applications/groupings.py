"""Find a grouping by name: built in, of another package, or as `module:name` or `file.py:name`.

A package adds its own by entry points of the group `elastream.groupings`:

    [project.entry-points."elastream.groupings"]
    nearest = "package.module:nearest"
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from elastream.errors import SettingError
from elastream.extensions import GROUPINGS, installed, is_path, load_installed, load_object
from elastream.topology import Grouping, groupings

BUILT_IN: dict[str, Grouping | Callable[..., Grouping]] = {
    "shuffle": groupings.shuffle,
    "load_balancing": groupings.load_balancing,
    "least_loaded": groupings.least_loaded,
    "redirection": groupings.redirection,
    "fields": groupings.fields,
    "partial_key": groupings.partial_key,
    "direct": groupings.direct,
    "local": groupings.local,
    "global": groupings.global_,
    "all": groupings.all_,
}
"""Name -> a grouping, or a function of columns that returns one."""


def grouping_names() -> tuple[str, ...]:
    """The names of all groupings: built in, then those of other packages."""
    return (*BUILT_IN, *sorted(set(installed(GROUPINGS)) - set(BUILT_IN)))


def grouping_named(word: str, *columns: str) -> Grouping:
    """The grouping of this name. A class, or a function that makes groupings, is given the columns."""
    if word in BUILT_IN:
        maker: Any = BUILT_IN[word]
    elif word in installed(GROUPINGS):
        maker = load_installed(GROUPINGS, word)
    elif is_path(word):
        maker = load_object("grouping", word)
    else:
        close = get_close_matches(word, grouping_names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "module:name and file.py:name are understood, too"
        raise SettingError(f"grouping {word!r}: expected one of {', '.join(grouping_names())}; {hint}")
    if isinstance(maker, Grouping):
        return maker
    try:
        made = maker(*columns)
    except TypeError as error:
        raise SettingError(f"grouping {word!r}: could not be made of columns {columns}: {error}") from None
    if not isinstance(made, Grouping):
        raise SettingError(
            f"grouping {word!r}: expected a subclass of elastream.groupings.Grouping, got {type(made).__name__}"
        )
    return made
