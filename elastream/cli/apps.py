"""From the word APP on the command line to a graph: a built-in, `file.py:name` or `module:name`."""

import argparse
import importlib
import importlib.util
import inspect
import sys
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from elastream.apps import BUILT_IN
from elastream.engine.sources import Replay
from elastream.errors import SettingError
from elastream.topology import Graph, Topology
from elastream.workload import Arrivals

Options = dict[str, str | float | int]

_PARAMETERS = {
    "payload": "payload",
    "database": "database",
    "service_ms": "service_ms",
    "grouping": "grouping",
    "pool": "replicas",
}
"""Options of the command line, and the parameters of an application's function that they are for."""


def add_app_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that an application may take: those that are parameters of its function."""
    group = parser.add_argument_group("the application's own options, for those that take them")
    group.add_argument("--payload", metavar="FILE", help="real events instead of generated ones")
    group.add_argument("--database", metavar="FILE|URL", help="where results go: a SQLite file or postgresql://...")
    group.add_argument("--service-ms", type=float, metavar="MS", help="added service time of every operator, a tuple")
    group.add_argument("--grouping", metavar="NAME", help="shuffle, load_balancing or least_loaded")
    group.add_argument("--pool", type=int, metavar="N", help="the most replicas of an operator")


def app_options(args: argparse.Namespace) -> Options:
    """Those that were given, by the names of the parameters they are."""
    given = {parameter: getattr(args, option) for option, parameter in _PARAMETERS.items()}
    return {parameter: value for parameter, value in given.items() if value is not None}


def load_app(word: str, arrivals: Arrivals | None, options: Options | None = None) -> Graph:
    """The built graph; with `arrivals`, its replay sources follow these instead of their own."""
    options = options or {}
    place = BUILT_IN.get(word, word)
    where, colon, name = place.rpartition(":")
    if not colon:
        close = get_close_matches(word, BUILT_IN, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"built in are {', '.join(BUILT_IN)}"
        raise SettingError(f"app {word!r}: expected a built-in, file.py:name or module:name; {hint}")
    found = getattr(_module(where, word), name, None)
    if found is None:
        raise SettingError(f"app {word!r}: {where} has no {name!r}; name the Topology, or a function that makes it")
    taken = inspect.signature(found).parameters if inspect.isfunction(found) else {}
    for option, parameter in _PARAMETERS.items():
        if parameter in options and parameter not in taken:
            raise SettingError(f"app {word!r}: takes no --{option.replace('_', '-')}; leave it out")
    if inspect.isfunction(found):
        found = found(**options)
    if not isinstance(found, Topology | Graph):
        raise SettingError(f"app {word!r}: expected a Topology, got {type(found).__name__}")
    graph = found.build() if isinstance(found, Topology) else found
    return graph if arrivals is None else _with_arrivals(graph, arrivals, word)


def _with_arrivals(graph: Graph, arrivals: Arrivals, word: str) -> Graph:
    if not any(isinstance(source.source, Replay) for source in graph.sources):
        raise SettingError(f"app {word!r}: has no replay source, so --trace has nothing to drive; leave --trace out")
    operators = tuple(
        replace(o, source=replace(o.source, arrivals=arrivals)) if isinstance(o.source, Replay) else o
        for o in graph.operators
    )
    return replace(graph, operators=operators)


def _module(where: str, word: str) -> ModuleType:
    if not where.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            raise SettingError(f"app {word!r}: {error}; give a file as path/to/app.py:name") from None
    path = Path(where)
    if not path.is_file():
        raise SettingError(f"app {word!r}: no file {where}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.absolute()))
    spec.loader.exec_module(module)
    # Workers cannot import a file by its path, so its functions travel whole.
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module
