"""From a word to a policy: `psps`, or with parameters `threshold:high=0.8,low=0.3`, `multi-level:table=FILE`."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches

from elastream.control import Policy
from elastream.errors import SettingError
from elastream.policies.autrascale import AuTraScale
from elastream.policies.cardellini import Cardellini
from elastream.policies.dabs import Dabs
from elastream.policies.dr_stream import DrStream
from elastream.policies.drs import Drs
from elastream.policies.ds2 import Ds2
from elastream.policies.elastic import Elastic
from elastream.policies.hidalgo import Hidalgo
from elastream.policies.markov import Markov
from elastream.policies.multi_level import MultiLevel
from elastream.policies.oracle import Oracle
from elastream.policies.psps import Psps
from elastream.policies.static import Static
from elastream.policies.storm_default import StormDefault
from elastream.policies.threshold import Threshold

POLICIES: dict[str, Callable[..., Policy]] = {
    "psps": Psps,
    "static": Static,
    "dabs": Dabs,
    "hidalgo": Hidalgo,
    "cardellini": Cardellini,
    "threshold": Threshold,
    "markov": Markov,
    "ds2": Ds2,
    "drs": Drs,
    "autrascale": AuTraScale,
    "elastic": Elastic,
    "oracle": Oracle,
    "dr-stream": DrStream,
    "storm-default": StormDefault,
    "multi-level": MultiLevel,
}


def make_policy(word: str) -> Policy:
    """A new policy of this name; its parameters are numbers, or names of files."""
    name, _, rest = word.partition(":")
    if name not in POLICIES:
        close = get_close_matches(name, POLICIES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(POLICIES)}"
        raise SettingError(f"policy {word!r}: no policy {name!r}; {hint}")
    make = POLICIES[name]
    return make(**_parameters(word, rest, inspect.signature(make)))


def _parameters(word: str, rest: str, signature: inspect.Signature) -> dict[str, float | str]:
    known = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    values: dict[str, float | str] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or key not in known:
            raise SettingError(
                f"policy {word!r}: {pair!r} is no parameter=number; there are {', '.join(known) or 'none'}"
            )
        if known[key] in (str, "str"):
            values[key] = value
            continue
        try:
            values[key] = int(value) if known[key] in (int, "int") else float(value)
        except ValueError:
            raise SettingError(f"policy {word!r}: {key} must be a number, got {value!r}") from None
    return values
