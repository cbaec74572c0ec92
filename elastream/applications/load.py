"""Load an application by name, `file.py:name` or `module:name`, and build its graph."""

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from elastream.applications.sizes import with_sizes
from elastream.errors import SettingError
from elastream.extensions import APPLICATIONS, installed, is_path, load_installed, load_object
from elastream.topology import App, Graph, graph_of
from elastream.user_code import errors_in_one_line
from elastream.workload import Arrivals
from elastream.workload.replay import with_arrivals

ARRIVALS, REPLICAS = "arrivals", "replicas"
"""Parameters of an application's function with a meaning of their own: they are given by --trace and --pool."""


def application_names() -> list[str]:
    """Applications of installed packages."""
    return sorted(installed(APPLICATIONS))


def find_app(word: str) -> Any:
    """The Topology, or the function that makes it."""
    if word in installed(APPLICATIONS):
        return load_installed(APPLICATIONS, word)
    if not is_path(word):
        names = application_names()
        close = get_close_matches(word, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"installed are {', '.join(names) or 'none'}"
        raise SettingError(f"app {word!r}: expected a name, file.py:name or module:name; {hint}")
    return load_object("app", word)


def parameters_of(app: Any) -> dict[str, inspect.Parameter]:
    """The parameters of an application's function, with their types; none if it is a Topology already."""
    if not inspect.isfunction(app):
        return {}
    return dict(inspect.signature(app, eval_str=True).parameters)


def load_app(word: str, arrivals: Arrivals | None, options: Mapping[str, Any] | None = None) -> Graph:
    """Build the graph. With `arrivals`, its replay sources follow these instead of their own.

    `options` are parameters of the application's function, and the sizes `pool` and `start`.
    """
    app = find_app(word)
    parameters = parameters_of(app)
    given = dict(options or {})
    pool, start = given.pop("pool", None), given.pop("start", None)
    for option in given:
        if option not in parameters:
            raise SettingError(f"app {word!r}: takes no {option.replace('_', '-')}; leave it out")
    if isinstance(pool, int) and REPLICAS in parameters:
        given[REPLICAS], pool = pool, None
    if arrivals is not None and ARRIVALS in parameters:
        # It may make its tuples by them, too.
        given[ARRIVALS] = arrivals
    topology = app
    if inspect.isfunction(app):
        with errors_in_one_line(f"app {word!r}: {app.__name__}() failed"):
            topology = app(**given)
    if not isinstance(topology, App):
        raise SettingError(f"app {word!r}: expected a Topology, got {type(topology).__name__}")
    graph = with_sizes(graph_of(topology), pool, start)
    return graph if arrivals is None else with_arrivals(graph, arrivals)
