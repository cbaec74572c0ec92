"""The cluster of a simulated system, from a YAML file: machines, times to start, failures, the skew of keys."""

from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from elastream.errors import SettingError
from elastream.simulator.containers import Startup
from elastream.simulator.key_groups import StateCosts
from elastream.simulator.machines import Failure
from elastream.simulator.model import Node
from elastream.yaml_text import parse_yaml

KINDS = ("machine", "process", "thread")


@dataclass(frozen=True)
class Cluster:
    """Without nodes, it is the machine of the profile."""

    nodes: tuple[Node, ...] = ()
    startup: Startup = field(default_factory=Startup)
    failures: tuple[Failure, ...] = ()
    crowding: float = 0.0
    """How much slower a node gets for each replica at work beyond its cores, besides sharing them."""
    tuple_kb: float = 0.0
    """The memory of a tuple that waits; machines without memory fail. 0: memory does not matter."""
    keys: int = 1000
    zipf: float = 0.0
    """How skewed these keys are; 0: all are equally frequent."""
    state: StateCosts = field(default_factory=StateCosts)
    """Of operators that remember something of every key."""


def load_cluster(path: str) -> Cluster:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"cluster {path}: cannot be read: {error}") from None
    document = parse_yaml(text, f"cluster {path}")
    try:
        return parse_cluster(document)
    except SettingError as error:
        raise SettingError(f"cluster {path}: {error}") from None


def parse_cluster(document: object) -> Cluster:
    """Every value is checked: a machine that does not exist cannot fail, and nothing takes less than no time."""
    values = _mapping(document, "the file")
    nodes: list[Node] = []
    for place, entry in enumerate(_list(values.pop("nodes", []), "nodes")):
        its = _mapping(entry, f"nodes[{place}]")
        count = its.pop("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 100_000:
            raise SettingError(f"nodes[{place}]: count must be 1..100000, got {count!r}")
        nodes += [_made(Node, its, f"nodes[{place}]", above=("cores", "speed", "memory_gb"))] * count
    startup = _made(
        Startup, _mapping(values.pop("startup", {}), "startup"), "startup", above=("threads_per_process", "processes")
    )
    failures = [_failure(entry, place) for place, entry in enumerate(_list(values.pop("failures", []), "failures"))]
    gone = [its.number for its in failures if its.kind == "machine" and its.number >= max(1, len(nodes))]
    if gone:
        raise SettingError(f"failures: there is no machine {gone[0]}; the first is 0, there are {max(1, len(nodes))}")
    if startup.machines is not None and not 1 <= startup.machines <= max(1, len(nodes)):
        raise SettingError(f"startup: machines must be 1..{max(1, len(nodes))}, got {startup.machines}")
    rates = ("keys_per_s", "mb_per_s", "storage_mb_per_s")
    state = _made(StateCosts, _mapping(values.pop("state", {}), "state"), "state", above=rates)
    known = {"nodes": tuple(nodes), "startup": startup, "failures": tuple(failures), "state": state}
    made: Cluster = _made(Cluster, values, "the file", above=("keys",), known=known)
    return made


def _failure(entry: object, place: int) -> Failure:
    where = f"failures[{place}]"
    values = _mapping(entry, where)
    kinds = [kind for kind in KINDS if kind in values]
    if len(kinds) != 1:
        raise SettingError(
            f"{where}: expected one of {', '.join(KINDS)} with a number, got {', '.join(values) or 'none'}"
        )
    number = values.pop(kinds[0])
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise SettingError(f"{where}: {kinds[0]} must be a whole number from 0 on, got {number!r}")
    failure: Failure = _made(Failure, values, where, above=("for_s",), known={"kind": kinds[0], "number": number})
    return failure


def _made(kind: Any, values: dict[str, Any], where: str, *, above: tuple[str, ...], known: Any = None) -> Any:
    """A dataclass of numbers, each 0 or more, or more than 0 where `above` names it."""
    known = known or {}
    types = {name: its for name, its in get_type_hints(kind).items() if name not in known}
    for name, value in values.items():
        if name not in types:
            keys = get_type_hints(kind) if kind is Cluster else types
            close = get_close_matches(str(name), keys, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(keys)}"
            raise SettingError(f"{where}: unknown key {name!r}; {hint}")
        whole = types[name] in (int, int | None)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise SettingError(f"{where}: {name} must be a {'whole ' if whole else ''}number, got {value!r}")
        if not 0 <= value < float("inf") or (name in above and not value):
            raise SettingError(
                f"{where}: {name} must be {'more than 0' if name in above else '0 or more'}, got {value}"
            )
    needed = [its.name for its in fields(kind) if its.default is MISSING and its.default_factory is MISSING]
    missing = [name for name in needed if name not in values and name not in known]
    if missing:
        raise SettingError(f"{where}: expected {missing[0]}")
    return kind(**values, **known)


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingError(f"{where}: expected keys with values, got {value!r}")
    return dict(value)


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise SettingError(f"{where}: expected a list, got {value!r}")
    return value
