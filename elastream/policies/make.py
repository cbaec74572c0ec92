"""From a word to a policy: `psps`, `threshold:high=0.8,low=0.3`, `mine.py:Mine` or `package.module:Mine:target_s=2`.

This is the one place that knows names. A package adds its own by entry points of the group `elastream.policies`:

    [project.entry-points."elastream.policies"]
    mine = "package.module:Mine"
"""

import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from elastream.control import Policy
from elastream.errors import ElastreamError, SettingError
from elastream.extensions import POLICIES as GROUP
from elastream.extensions import installed, place_of, user_module

POLICIES: dict[str, str] = {
    "psps": "elastream.policies.psps:Psps",
    "static": "elastream.policies.static:Static",
    "threshold": "elastream.policies.threshold:Threshold",
    "ds2": "elastream.policies.ds2:Ds2",
    "autrascale": "elastream.policies.autrascale.policy:AuTraScale",
    "elastic": "elastream.policies.elastic:Elastic",
    "dr-stream": "elastream.policies.dr_stream:DrStream",
    "multi-level": "elastream.policies.multi_level:MultiLevel",
}
"""The built-in policies: name -> module:Class. Entry points add others."""

TARGETS = ("latency_s", "latency_ms", "per_second")
"""Parameters that a class may name in its `targets`."""


@dataclass(frozen=True)
class PolicyWord:
    """A policy as users write it, taken apart."""

    word: str
    maker: str
    """A name, or `place:Class`."""
    kind: type[Policy]
    parameters: str
    """`key=value,...`; empty: none."""

    def with_parameter(self, key: str, value: str) -> str:
        """The word with one more parameter."""
        return f"{self.maker}:{f'{self.parameters},' if self.parameters else ''}{key}={value}"

    @property
    def keys(self) -> frozenset[str]:
        """The parameters that the word sets."""
        return frozenset(pair.partition("=")[0] for pair in self.parameters.split(",") if pair)


def policy_names() -> tuple[str, ...]:
    """The names of all policies: built in, then those of other packages."""
    return (*POLICIES, *sorted(set(installed(GROUP)) - set(POLICIES)))


def make_policy(word: str) -> Policy:
    """A new policy of this word; its parameters are numbers, or words where its class says `str`."""
    asked = parse_policy(word)
    parameters = _parameters(asked)
    try:
        return asked.kind(**parameters)
    except ElastreamError:
        raise
    except Exception as error:
        raise SettingError(
            f"policy {word!r}: {asked.kind.__name__} could not be made: {type(error).__name__}: {error}"
        ) from error


def parse_policy(word: str) -> PolicyWord:
    """Find the class that a word names; whatever is wrong with it is said in one line."""
    if not isinstance(word, str):
        raise SettingError(f"policy {word!r}: expected a name, module:Class or file.py:Class")
    name, _, rest = word.partition(":")
    if name in policy_names():
        return PolicyWord(word, name, _named(word, name), rest)
    class_name, _, parameters = rest.partition(":")
    if not class_name or "=" in class_name:
        names = policy_names()
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise SettingError(
            f"policy {word!r}: no policy {name!r}; {hint}there are {', '.join(names)}, module:Class and file.py:Class"
        )
    return PolicyWord(word, f"{name}:{class_name}", _class_at(word, name, class_name), parameters)


def check_policy(policy: object) -> None:
    """Refuse what `run(policy=...)` cannot use."""
    if policy is None or isinstance(policy, Policy):
        return
    if isinstance(policy, str):
        parse_policy(policy)
        return
    if isinstance(policy, type):
        raise SettingError(f"policy: got the class {policy.__name__}; pass an object, {policy.__name__}(...)")
    raise SettingError(
        f"policy: expected a name or an object of a subclass of elastream.Policy, got {type(policy).__name__}; "
        f"write class {type(policy).__name__}(Policy) with propose(observation)"
    )


def _named(word: str, name: str) -> type[Policy]:
    place = POLICIES.get(name) or place_of(f"policy {word!r}", GROUP, name)
    where, _, class_name = place.partition(":")
    return _class_at(word, where, class_name)


def _class_at(word: str, where: str, class_name: str) -> type[Policy]:
    here = f"policy {word!r}"
    module = user_module(where, here)
    kind = getattr(module, class_name, None)
    if kind is None:
        own = [name for name, value in vars(module).items() if _is_policy(value)]
        raise SettingError(f"{here}: {where} has no {class_name!r}; {_policies_in(own, class_name)}")
    if not isinstance(kind, type):
        raise SettingError(f"{here}: expected a class, got {type(kind).__name__}; name a subclass of elastream.Policy")
    if getattr(kind, "propose", Policy.propose) is Policy.propose:
        raise SettingError(f"{here}: {class_name} has no propose; write propose(self, observation) -> Proposal")
    if not issubclass(kind, Policy):
        raise SettingError(f"{here}: {class_name} is no Policy; write class {class_name}(elastream.Policy)")
    # A subclass whose constructor does not take an inherited target has none.
    for target in vars(kind).get("targets", ()):
        if target not in TARGETS or target not in inspect.signature(kind).parameters:
            raise SettingError(
                f"{here}: targets has {target!r}; expected parameters of {class_name}, of {', '.join(TARGETS)}"
            )
    return kind


def _is_policy(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Policy) and not inspect.isabstract(value)


def _policies_in(names: list[str], wanted: str) -> str:
    close = get_close_matches(wanted, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"policies in it: {', '.join(names)}" if names else "it has no subclass of elastream.Policy"


def _parameters(asked: PolicyWord) -> dict[str, Any]:
    known = inspect.signature(asked.kind).parameters
    values: dict[str, Any] = {}
    for pair in filter(None, asked.parameters.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or key not in known:
            raise SettingError(
                f"policy {asked.word!r}: {pair!r} is no parameter=number; there are {', '.join(known) or 'none'}"
            )
        values[key] = _value(asked.word, known[key], value)
    missing = [name for name, parameter in known.items() if _is_required(parameter) and name not in values]
    if missing:
        raise SettingError(
            f"policy {asked.word!r}: {missing[0]} is missing; write {asked.with_parameter(missing[0], '...')}"
        )
    return values


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )


def _value(word: str, parameter: inspect.Parameter, value: str) -> float | str | bool:
    """As the parameter's annotation says, or its default if it has none; a number if neither does."""
    kind = parameter.annotation
    if kind is parameter.empty and parameter.default not in (parameter.empty, None):
        kind = type(parameter.default)
    if kind in (str, "str"):
        return value
    if kind in (bool, "bool"):
        if value.lower() not in ("true", "false", "1", "0"):
            raise SettingError(f"policy {word!r}: {parameter.name} must be true or false, got {value!r}")
        return value.lower() in ("true", "1")
    try:
        return int(value) if kind in (int, "int") else float(value)
    except ValueError:
        raise SettingError(f"policy {word!r}: {parameter.name} must be a number, got {value!r}") from None
