"""A suite: scenarios in a YAML file, checked before the first of them runs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from elastream.errors import SettingError
from elastream.workload.traces import find_trace, trace_names, where_looked
from elastream.yaml_text import yaml_errors
from elastream_lab.bench.suites.outcomes import COLUMNS
from elastream_lab.bench.suites.scenario import Scenario, scenario_from

KEYS = ("title", "note", "columns", "simulated", "defaults", "scenarios")


@dataclass(frozen=True)
class Suite:
    name: str
    title: str
    scenarios: tuple[Scenario, ...]
    note: str = ""
    """What to look for in the result."""
    simulated: Mapping[str, Any] | None = None
    """The model that it runs on, for a suite that is for the simulator only; see `suite_model`."""
    columns: tuple[str, ...] = ()
    """Of the tables to read; none: all of which something is known."""

    def with_traces(self, folder: str) -> "Suite":
        """The same, with workloads that are files taken from this directory first."""
        scenarios = []
        for scenario in self.scenarios:
            word = scenario.workload
            found = find_trace(word, [folder]) if word and word not in trace_names() else None
            if found is None and word and word.endswith(".csv"):
                raise SettingError(f"workload {word!r}: no such file; {where_looked([folder])}")
            scenarios.append(replace(scenario, workload=str(found)) if found else scenario)
        return replace(self, scenarios=tuple(scenarios))


def suite_names() -> list[str]:
    """Those that ship with the package."""
    found = (entry.name.removesuffix(".yaml") for entry in _folder().iterdir() if entry.name.endswith(".yaml"))
    # table-10 after table-9
    return sorted(found, key=lambda name: (name.rstrip("0123456789"), len(name), name))


def load_suite(word: str) -> Suite:
    """A suite by its name, or a YAML file by its path."""
    if word in suite_names():
        return parse_suite(word, _folder().joinpath(f"{word}.yaml").read_text(encoding="utf-8"), word)
    path = Path(word)
    if not path.is_file():
        close = get_close_matches(word, suite_names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(suite_names())}, or a YAML file"
        raise SettingError(f"suite {word!r}: no such suite; {hint}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"suite {word}: expected a text file in UTF-8: {error}") from None
    return parse_suite(path.stem, text, word)


def parse_suite(name: str, text: str, where: str) -> Suite:
    """Every error names the line."""
    with yaml_errors(f"suite {where}"):
        return _parse(name, text, where)


def _parse(name: str, text: str, where: str) -> Suite:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingError(f"suite {where}, line {line}: {error.context or 'not YAML'}: {error.problem}") from None
    if root is None:
        raise SettingError(f"suite {where}: the file is empty; it needs scenarios")
    top = dict(_items(root, where))
    for key, node in top.items():
        if key not in KEYS:
            close = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(KEYS)}"
            raise SettingError(f"suite {where}, line {_line(node)}: unknown key {key!r}; {hint}")
    listed = top.get("scenarios")
    if not isinstance(listed, yaml.SequenceNode) or not listed.value:
        line = _line(listed) if listed else _line(root)
        raise SettingError(f"suite {where}, line {line}: expected scenarios, a list with one entry or more")
    defaults = dict(_values(top["defaults"], where)) if "defaults" in top else {}
    scenarios = tuple(_scenario(node, defaults, where) for node in listed.value)
    twice = [name for name, count in Counter(scenario.name for scenario in scenarios).items() if count > 1]
    if twice:
        raise SettingError(
            f"suite {where}: two scenarios are named {twice[0]!r}; their reports would lie on one another"
        )
    words = {key: str(_value(top[key])) for key in ("title", "note") if key in top}
    simulated = dict(_values(top["simulated"], where)) if "simulated" in top else None
    columns = _columns(top["columns"], where) if "columns" in top else ()
    return Suite(name, words.get("title", name), scenarios, words.get("note", "").strip(), simulated, columns)


def _columns(node: yaml.Node, where: str) -> tuple[str, ...]:
    found = _value(node)
    for name in found if isinstance(found, list) else [found]:
        if name not in COLUMNS:
            close = get_close_matches(str(name), COLUMNS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(COLUMNS)}"
            raise SettingError(f"suite {where}, line {_line(node)}: columns: no column {name!r}; {hint}")
    if not isinstance(found, list):
        raise SettingError(f"suite {where}, line {_line(node)}: columns: expected a list, got {found!r}")
    return tuple(found)


def _scenario(node: yaml.Node, defaults: dict[str, Any], where: str) -> Scenario:
    own = dict(_values(node, where))
    try:
        return scenario_from({**defaults, **own})
    except SettingError as error:
        named = f"scenario {own['name']!r}" if "name" in own else "a scenario"
        raise SettingError(f"suite {where}, line {_line(node)}: {named}: {error}") from None


def _items(node: yaml.Node, where: str) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise SettingError(f"suite {where}, line {_line(node)}: expected keys with values, such as policy: psps")
    seen: set[str] = set()
    for key, value in node.value:
        if key.value in seen:
            raise SettingError(f"suite {where}, line {_line(key)}: {key.value!r} is said twice")
        seen.add(key.value)
        yield key.value, value


def _values(node: yaml.Node, where: str) -> Iterator[tuple[str, Any]]:
    for key, value in _items(node, where):
        yield key, _value(value)


def _value(node: yaml.Node) -> Any:
    """Plain values only: the safe loader makes nothing else."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _folder() -> Any:
    return files(__package__).joinpath("shipped")
