"""Functions of operators that are made when they are needed: a graph can be looked at without training its models."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


class Lazily:
    """Calls what `make` gives. When it travels to workers it is made before, so that they get it ready."""

    def __init__(self, make: Callable[[], Function]) -> None:
        self._make = make
        self._made: Function | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self._function()(*arguments)

    def __reduce__(self) -> tuple[Callable[[Function], Function], tuple[Function]]:
        return as_it_is, (self._function(),)

    def _function(self) -> Function:
        if self._made is None:
            self._made = self._make()
        return self._made


def as_it_is(function: Function) -> Function:
    return function
