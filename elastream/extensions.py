"""Find policies, groupings, applications and commands: by entry point, as `module:name` or as `path/to/file.py:name`.

A package adds its own through entry points in the groups below. Nothing is imported before it is used.
"""

import importlib
import importlib.util
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from elastream.errors import SettingError
from elastream.user_code import errors_in_one_line, importing

APPLICATIONS = "elastream.applications"
"""Name -> a Topology, or a function that returns one."""

COMMANDS = "elastream.commands"
"""Any name -> a list of `elastream.cli.commands.Command`."""

SYSTEMS = "elastream.systems"
"""Name -> a function that makes a system for the simulator: `elastream.simulator.application.MakeSystem`."""

GROUPINGS = "elastream.groupings"
"""Name -> an object or a subclass of `elastream.groupings.Grouping`, or a function of columns that returns one."""

POLICIES = "elastream.policies"
"""Name -> a subclass of `elastream.Policy`."""


OURS = ("elastream", "elastream_lab")

EXTRAS = {"numba": "simulate", "sklearn": "learn", "scipy": "learn", "matplotlib": "plots", "psycopg": "lab"}
"""Package that may be missing -> the extra of Elastream that brings it."""


@cache
def installed(group: str) -> dict[str, frozenset[str]]:
    """Names of a group, and where installed packages have them, as `module:object`."""
    named: dict[str, frozenset[str]] = {}
    for point in entry_points(group=group):
        named[point.name] = named.get(point.name, frozenset()) | {point.value.replace(" ", "")}
    return named


def place_of(what: str, group: str, name: str) -> str:
    """Where the object behind an entry point is. `what` says in errors what it is for."""
    places = sorted(installed(group)[name])
    if len(places) > 1:
        raise SettingError(f"{what}: {len(places)} packages have a {name!r}; write {' or '.join(places)}")
    return places[0]


def load_installed(group: str, name: str) -> Any:
    """The object behind an entry point. Raises one line if its package lacks a dependency."""
    where, _, attribute = place_of(name, group, name).partition(":")
    return getattr(import_own(name, where), attribute)


def import_own(what: str, module: str) -> ModuleType:
    """Import a module of an installed package. Raises one line that names the extra if a package is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("elastream"):
            raise
        raise SettingError(f"{what} needs the package {error.name}; {how_to_install(error.name)}") from None


def how_to_install(package: str) -> str:
    """How to get a package that is missing: by an extra of ours, if one has it."""
    package = package.partition(".")[0]
    extra = EXTRAS.get(package)
    return f"install it with: pip install {repr(f'elastream[{extra}]') if extra else package}"


def is_path(word: str) -> bool:
    """True for `module:name` and `file.py:name`."""
    where, colon, name = word.rpartition(":")
    return bool(colon) and name.isidentifier() and (where.endswith(".py") or where.replace(".", "").isidentifier())


def load_object(what: str, word: str) -> Any:
    """The object that `module:name` or `file.py:name` names. `what` says in errors what it is for."""
    where, _, name = word.rpartition(":")
    module = user_module(where, f"{what} {word!r}")
    if not hasattr(module, name):
        raise SettingError(f"{what} {word!r}: {where} has no {name!r}")
    if where.endswith(".py"):
        # Workers cannot import a file by its path, so its functions are sent by value.
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return getattr(module, name)


_loaded: dict[tuple[str, int, int], ModuleType] = {}
"""Files that were run, by path, time of change and size: a file that is named twice is run once."""


def user_module(where: str, what: str) -> ModuleType:
    """Import a module, or run a file. `what` is who names it, for errors: "policy 'mine.py:Mine'"."""
    if not where.endswith(".py"):
        return _imported(where, what)
    path = Path(where)
    if not path.is_file():
        raise SettingError(f"{what}: no file {where}")
    stat = path.stat()
    version = (str(path.resolve()), stat.st_mtime_ns, stat.st_size)
    if version not in _loaded:
        _loaded[version] = _run_file(path, what)
    return _loaded[version]


def _imported(where: str, what: str) -> ModuleType:
    _search_first(str(Path.cwd()))
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, TypeError, ValueError) as error:
        raise SettingError(f"{what}: {error}; give a file as path/to/file.py:name") from None
    if found is None:
        raise SettingError(f"{what}: No module named {where!r}; give a file as path/to/file.py:name")
    if where.partition(".")[0] in OURS:
        return import_own(what, where)
    with importing("the command line"), errors_in_one_line(f"{what}: its import failed"):
        return importlib.import_module(where)


def _run_file(path: Path, what: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    _search_first(str(path.parent.absolute()))
    try:
        with importing("the command line"), errors_in_one_line(f"{what}: its import failed"):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(path.stem)
        if before is not None:
            sys.modules[path.stem] = before
        raise
    return module


def _search_first(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)
