"""Options of an application on the command line, made from the parameters of its function.

`def topology(arrivals=None, *, top: Annotated[int, "words to keep"] = 10)` gives `--top N`. Operators' sizes,
`--pool` and `--start`, are options of every application.
"""

import argparse
import inspect
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin

from elastream.applications.load import ARRIVALS, REPLICAS, find_app, parameters_of
from elastream.applications.sizes import Sizes, read_sizes
from elastream.errors import SettingError


class _Parser(argparse.ArgumentParser):
    """Raise one line instead of leaving the program."""

    def error(self, message: str) -> NoReturn:
        raise SettingError(f"{self.prog}: {message}; --help after the application lists its options")


def app_parser(word: str) -> argparse.ArgumentParser:
    """A parser for the options of the application that `word` names."""
    parser = _Parser(prog=f"app {word}", add_help=False, allow_abbrev=False, usage=argparse.SUPPRESS)
    group = parser.add_argument_group(f"options of the application {word}")
    group.add_argument(
        "--pool", type=sizes, metavar="N|OP=N,...", help="the most replicas, of all operators or of those named"
    )
    group.add_argument("--start", type=sizes, metavar="N|OP=N,...", help="replicas that a run begins with")
    for name, parameter in parameters_of(find_app(word)).items():
        if name in (ARRIVALS, REPLICAS):
            continue
        kind, choices, text = _kind_of(parameter)
        default = "" if parameter.default in (None, inspect.Parameter.empty) else f"default: {parameter.default}"
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            type=kind,
            choices=choices,
            metavar=None if choices else kind.__name__.upper(),
            help="; ".join(filter(None, (text, default))),
        )
    return parser


def app_options(word: str, words: Sequence[str]) -> dict[str, Any]:
    """The options that were given, by name, from the words that no other option took."""
    values = vars(app_parser(word).parse_args(list(words)))
    return {name: value for name, value in values.items() if value is not None}


def sizes(word: str) -> Sizes:
    """For argparse, which says where it stands."""
    try:
        return read_sizes(word)
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _kind_of(parameter: inspect.Parameter) -> tuple[Any, tuple[str, ...] | None, str]:
    """The type, the choices and the help text of a parameter."""
    annotation, text = parameter.annotation, ""
    if get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
        text = next((note for note in notes if isinstance(note, str)), "")
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not NoneType)
    if get_origin(annotation) is Literal:
        return str, get_args(annotation), text
    return (annotation if annotation in (int, float) else str), None, text
