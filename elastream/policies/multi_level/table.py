"""The table that the benchmark of an application leaves: load level -> configuration (table 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import yaml

from elastream.control import Observation
from elastream.errors import SettingError
from elastream.fleet import Level
from elastream.policies.multi_level.shipped import read_text
from elastream.yaml_text import parse_yaml

KEYS = ("app", "min_health", "rows")
COUNTS = {"seats": Level.SEAT, "hosts": Level.HOST, "executors": Level.EXECUTOR}


@dataclass(frozen=True)
class Configuration:
    """Replicas per operator, and containers per level as far as they are known."""

    replicas: Mapping[str, int]
    levels: Mapping[Level, int] = field(default_factory=dict)

    @classmethod
    def planned(cls, observation: Observation) -> Configuration:
        """As it is decided at the end of an interval."""
        replicas = {operator.operator: operator.replicas for operator in observation.scalable()}
        return cls(replicas, {state.level: state.planned for state in observation.fleet})

    def with_more(self, replicas: Mapping[str, int], levels: Mapping[Level, int]) -> Configuration:
        return Configuration({**self.replicas, **replicas}, {**self.levels, **levels})

    def __str__(self) -> str:
        replicas = ", ".join(f"{name} {count}" for name, count in self.replicas.items())
        return "; ".join([*(level.count(count) for level, count in reversed([*self.levels.items()])), replicas])


@dataclass(frozen=True)
class Row:
    """A configuration, and the most tuples per second that it carries."""

    up_to: float
    configuration: Configuration


@dataclass(frozen=True)
class Table:
    """Rows from the lowest load to the highest."""

    app: str
    rows: tuple[Row, ...]
    min_health: float = 0.9

    def to_yaml(self) -> str:
        rows = []
        for row in self.rows:
            counts = {
                name: row.configuration.levels[level]
                for name, level in COUNTS.items()
                if level in row.configuration.levels
            }
            rows.append({"up_to": row.up_to, "replicas": dict(row.configuration.replicas), **counts})
        document = {"app": self.app, "min_health": self.min_health, "rows": rows}
        return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=140)


def merged(app: str, levels: Iterable[tuple[float, Configuration]], min_health: float) -> Table:
    """Load levels with what carried them; neighbours with the same configuration become one row."""
    rows: list[Row] = []
    for up_to, configuration in levels:
        if rows and rows[-1].configuration == configuration:
            rows.pop()
        rows.append(Row(up_to, configuration))
    return Table(app, tuple(rows), min_health)


def load_table(word: str) -> Table:
    """A file, or a table that ships with the package, by its name."""
    return parse_table(read_text("table", word, "ramp"), word)


def parse_table(text: str, where: str) -> Table:
    """Every value is checked: loads rise, and no configuration is empty."""
    document = parse_yaml(text, f"table {where}")
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list) or not document["rows"]:
        raise SettingError(
            f"table {where}: expected rows, a list with one entry or more; write one with elastream ramp"
        )
    for key in document:
        if key not in KEYS:
            raise SettingError(f"table {where}: unknown key {key!r}; there are {', '.join(KEYS)}")
    health = document.get("min_health", 0.9)
    if isinstance(health, bool) or not isinstance(health, int | float) or not 0 < health <= 1:
        raise SettingError(f"table {where}: min_health must be above 0, and 1 at most, got {health!r}")
    rows: list[Row] = []
    for number, entry in enumerate(document["rows"], 1):
        rows.append(_row(entry, f"table {where}, row {number}"))
        if len(rows) > 1 and rows[-1].up_to <= rows[-2].up_to:
            raise SettingError(
                f"table {where}, row {number}: up_to must rise from row to row, got {rows[-1].up_to:g} after {rows[-2].up_to:g}"
            )
    return Table(str(document.get("app", "")), tuple(rows), float(health))


def _row(entry: object, where: str) -> Row:
    if not isinstance(entry, dict):
        raise SettingError(f"{where}: expected up_to, replicas and counts of containers, got {entry!r}")
    for key in entry:
        if key not in ("up_to", "replicas", *COUNTS):
            raise SettingError(f"{where}: unknown key {key!r}; there are up_to, replicas, {', '.join(COUNTS)}")
    up_to, replicas = entry.get("up_to"), entry.get("replicas")
    if isinstance(up_to, bool) or not isinstance(up_to, int | float) or not 0 < up_to < inf:
        raise SettingError(f"{where}: up_to must be tuples per second, more than 0, got {up_to!r}")
    if not isinstance(replicas, dict) or not replicas:
        raise SettingError(f"{where}: replicas must be a number per operator, got {replicas!r}")
    counts: dict[str, Any] = {**replicas, **{name: entry[name] for name in COUNTS if name in entry}}
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise SettingError(f"{where}: {name} must be a whole number, 1 or more, got {count!r}")
    levels = {level: entry[name] for name, level in COUNTS.items() if name in entry}
    return Row(float(up_to), Configuration({str(name): count for name, count in replicas.items()}, levels))
