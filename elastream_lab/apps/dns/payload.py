"""DNS queries: a tuple's number enters, who asked for which name leaves, the same each time.

Names wait in a pool. Unless they come from a file, most are ordinary, some were made by an algorithm, and a few break
the rules of DNS, as in every real stream. The workload's hot keys are names.
"""

from dataclasses import dataclass
from random import Random

import pyarrow as pa

from elastream.workload import EQUAL, KeyChoice, Keys
from elastream_lab.apps.common.payload_files import read_names
from elastream_lab.apps.common.scatter import Numbers, scattered
from elastream_lab.apps.dns.names import benign_names, generated_names
from elastream_lab.apps.dns.words import SUBDOMAINS

NAMES, CLIENTS = 4000, 1000

_BROKEN = ("two..dots.com", "-hyphen.first.org", "nodots", "sp ace.net", f"{'long' * 16}.com", "comma,inside.de", "")
_KINDS = ("A", "A", "A", "A", "A", "AAAA", "AAAA", "HTTPS", "MX", "TXT")


@dataclass(frozen=True, eq=False)
class DnsPayload:
    """Called with numbers, makes the source's columns."""

    names: pa.Array
    clients: pa.Array
    kinds: pa.Array
    name_of: KeyChoice
    """Which name a query asks for: in a data spike many ask for a few names."""

    def __call__(self, numbers: Numbers) -> dict[str, pa.Array]:
        return {
            "id": pa.array(numbers),
            "client": self.clients.take(pa.array(scattered(numbers, len(self.clients)))),
            "kind": self.kinds.take(pa.array(scattered(numbers + 1, len(self.kinds)))),
            "name": self.names.take(pa.array(self.name_of(numbers, numbers % len(self.names)))),
        }


def dns_payload(file: str | None = None, keys: Keys = EQUAL) -> DnsPayload:
    """Names from the file (one a line, or the column host of a .csv), else generated.

    `keys` are those of the workload; its hot keys are names.
    """
    random = Random(53)
    names = read_names(file) if file else _names(random)
    clients = [f"10.{n % 4}.{n // 4 % 256}.{n * 7 % 254 + 1}" for n in range(CLIENTS)]
    name_of = keys.among(len(names))
    return DnsPayload(pa.array(names), pa.array(clients), pa.array(_KINDS), name_of)


def _names(random: Random) -> list[str]:
    names = [_as_asked(name, random) for name in benign_names(NAMES * 79 // 100, random)]
    names += generated_names(NAMES // 5, random)
    names += [random.choice(_BROKEN) for _ in range(NAMES - len(names))]
    random.shuffle(names)
    return names


def _as_asked(name: str, random: Random) -> str:
    if random.random() < 0.4:
        name = f"{random.choice(SUBDOMAINS)}.{name}"
    if random.random() < 0.05:
        # A resolver that mixes the case, so that a forged answer is recognised.
        name = "".join(random.choice((letter.lower(), letter.upper())) for letter in name)
    return name + "." if random.random() < 0.05 else name
