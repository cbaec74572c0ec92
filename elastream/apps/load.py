"""From a word to a graph: a built-in, `file.py:name` or `module:name`."""

import importlib
import importlib.util
import inspect
import sys
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from elastream.apps import BUILT_IN
from elastream.apps.sizes import with_sizes
from elastream.errors import SettingError
from elastream.topology import Graph, Topology
from elastream.workload import Arrivals
from elastream.workload.replay import Replay

Options = dict[str, Any]

PARAMETERS = {
    "payload": "payload",
    "database": "database",
    "service_ms": "service_ms",
    "grouping": "grouping",
    "pool": "replicas",
    "zipf": "zipf",
    "vocabulary": "vocabulary",
    "top": "top",
    "model": "model",
    "lattice": "lattice",
}
"""Options of an application, and the parameters of its function that they are for."""

OPTIONS = (*PARAMETERS, "start")
"""Every application takes `start`, and a `pool` for operators by their names: both are sizes of the graph that it makes."""


def load_app(word: str, arrivals: Arrivals | None, options: Options | None = None) -> Graph:
    """The built graph; with `arrivals`, its replay sources follow these instead of their own.

    `options` are those of `OPTIONS` that were given.
    """
    options = dict(options or {})
    start = options.pop("start", None)
    pool = options.pop("pool") if isinstance(options.get("pool"), str) else None
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
    for option in options:
        if PARAMETERS[option] not in taken:
            raise SettingError(f"app {word!r}: takes no {option.replace('_', '-')}; leave it out")
    if inspect.isfunction(found):
        # One that takes arrivals may make its tuples by them, too.
        given = {PARAMETERS[option]: value for option, value in options.items()}
        found = found(**given, **({"arrivals": arrivals} if arrivals and "arrivals" in taken else {}))
    if not isinstance(found, Topology | Graph):
        raise SettingError(f"app {word!r}: expected a Topology, got {type(found).__name__}")
    graph = with_sizes(found.build() if isinstance(found, Topology) else found, pool, start)
    return graph if arrivals is None else _with_arrivals(graph, arrivals, word)


def _with_arrivals(graph: Graph, arrivals: Arrivals, word: str) -> Graph:
    if not any(isinstance(source.source, Replay) for source in graph.sources):
        raise SettingError(f"app {word!r}: has no replay source, so a trace has nothing to drive; leave it out")
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
