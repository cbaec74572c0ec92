"""Generated network traffic: numbers of flows enter; NetFlow-like records leave, labelled with the attack they belong to.

Ordinary flows go from many clients to a few servers, both by Zipf's law, for the usual services. The four kinds of attack are ways
of sending a great number of requests to one target:

- `syn-flood`: one small TCP packet each, from forged addresses that never come again;
- `udp-flood`: heavy UDP flows from some machines to any port;
- `amplification`: long answers of DNS and NTP servers that the target has not asked;
- `http-flood`: requests as anybody's, only too many, from several hundred machines.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from elastream.topology import parse_schema
from elastream.workload.counter_hash import Floats, Numbers, fractions, hashes
from elastream_lab.apps.ddos.clock import KINDS, flow_clock

RECORD = parse_schema(
    "time timestamp, source string, destination string, protocol string, source_port long, port long, packets long, "
    "bytes long, ms long, label string"
)
"""Columns of a flow record, in the order of a line."""

Columns = dict[str, npt.NDArray[Any]]

CLIENTS, SERVERS = 3000, 60
_CLIENT_NET, _SERVER_NET = 0x0A000000, 0xC6336400
_BOT_NET, _REFLECTOR_NET = 0x2D000000, 0xCB007100

_SERVICES = (
    # port, protocol, how many of the flows, packets, bytes per packet, milliseconds per packet
    (443, "TCP", 0.46, 14, 700, 30),
    (80, "TCP", 0.13, 10, 650, 25),
    (53, "UDP", 0.20, 1, 110, 2),
    (8080, "TCP", 0.05, 9, 500, 40),
    (123, "UDP", 0.04, 1, 76, 1),
    (3306, "TCP", 0.04, 20, 300, 10),
    (25, "TCP", 0.03, 18, 600, 50),
    (22, "TCP", 0.02, 40, 180, 200),
    (0, "ICMP", 0.03, 3, 84, 1000),
)
_PORT, _, _WEIGHT, _PACKETS, _SIZE, _PAUSE = (np.array(column) for column in zip(*_SERVICES, strict=True))
_PROTOCOL = pa.array([protocol for _, protocol, *_ in _SERVICES])


@dataclass(frozen=True)
class Traffic:
    """Called with numbers, makes records. The seed chooses who, when and how; without attacks it is what is normal."""

    seed: int = 0
    attacks: bool = True

    def __call__(self, numbers: Numbers) -> pa.RecordBatch:
        clock = flow_clock(self.seed, self.attacks)
        chance = _Chance(numbers, self.seed)
        flows = _ordinary(chance)
        place = clock.attack_of(numbers, self.seed * 31 + 7)
        kind = np.full(len(numbers), -1)
        if (place >= 0).any():
            kinds = np.array([KINDS.index(attack.kind) for attack in clock.attacks])
            kind = np.where(place >= 0, kinds[place], -1)
            for n, attack in enumerate(_attacking(chance, place, self.seed)):
                flows = {name: np.where(kind == n, attack.get(name, column), column) for name, column in flows.items()}
        packets, portless = flows["packets"], _PORT[flows["service"]] == 0
        return pa.RecordBatch.from_arrays(
            [
                pa.array(clock.at_us(numbers)).cast(pa.timestamp("us", "UTC")),
                addresses(flows["source"]),
                addresses(flows["destination"]),
                _PROTOCOL.take(pa.array(flows["service"])),
                pa.array(np.where(portless, 0, flows["source_port"])),
                pa.array(np.where(portless, 0, flows["port"])),
                pa.array(packets),
                pa.array((packets * flows["size"]).astype(np.int64)),
                pa.array((flows["pause"] * (packets - 1)).astype(np.int64)),
                pa.array(["", *KINDS]).take(pa.array(kind + 1)),
            ],
            schema=RECORD,
        )


def _ordinary(chance: "_Chance") -> Columns:
    """Flows of people: addresses as numbers, the size of a packet in bytes, the pause between two in milliseconds."""
    service = np.searchsorted(np.cumsum(_WEIGHT)[:-1], chance())
    return {
        "service": service,
        "source": _CLIENT_NET + _zipf(chance(), CLIENTS, 0.7) * 37,
        "destination": _SERVER_NET + _zipf(chance(), SERVERS, 0.8),
        "port": _PORT[service],
        "source_port": _high_ports(chance()),
        "packets": 1 + (_PACKETS[service] * _exponential(chance())).astype(np.int64),
        "size": _SIZE[service] * (0.5 + chance()),
        "pause": _PAUSE[service] * _exponential(chance()),
    }


def _attacking(chance: "_Chance", place: Numbers, seed: int) -> list[Columns]:
    """Per kind of attack, what differs from ordinary flows, as if all were of that kind; `place` is that of the attack."""
    u, v = chance(), chance()
    target = {"destination": _SERVER_NET + hashes(place, seed + 5).astype(np.int64) % SERVERS}
    bots = _BOT_NET + place * 4096
    forged = (chance() * 0xDF000000).astype(np.int64) + 0x01000000
    one, many, some = np.ones_like(place), 20 + (v * 200).astype(np.int64), 4 + (v * 8).astype(np.int64)
    tcp, udp, http = (np.full_like(place, _PORT.tolist().index(port)) for port in (443, 53, 80))
    syn = {"service": tcp, "source": forged, "port": np.where(place % 2, 80, 443), "packets": one, "size": 40 + 20 * v}
    heavy = {"service": udp, "source": bots + (u * 40).astype(np.int64) * 13, "packets": many, "size": 900 + 500 * v}
    answers: Columns = {"service": udp, "source": _REFLECTOR_NET + (u * 250).astype(np.int64), "packets": some}
    answers |= {"source_port": np.where(place % 2, 53, 123), "size": 1300 + 150 * v}
    anywhere: Columns = {"port": _high_ports(v), "pause": v}
    requests = {"service": http, "source": bots + (u * 400).astype(np.int64) * 7, "port": _PORT[http]}
    return [target | syn | {"pause": v}, target | heavy | anywhere, target | answers | anywhere, target | requests]


class _Chance:
    """Fractions for every number, others at every call."""

    def __init__(self, numbers: Numbers, seed: int) -> None:
        self._numbers, self._salt = numbers, seed * 1000 + 17

    def __call__(self) -> Floats:
        self._salt += 1
        return fractions(self._numbers, self._salt)


def addresses(numbers: Numbers) -> pa.Array:
    """IPv4 addresses in words."""
    octets = [pa.array(numbers >> shift & 255).cast(pa.string()) for shift in (24, 16, 8, 0)]
    return pc.binary_join_element_wise(*octets, ".")


def _zipf(fraction: Floats, count: int, exponent: float) -> npt.NDArray[np.int64]:
    ends = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    return np.minimum(np.searchsorted(ends / ends[-1], fraction, side="right"), count - 1)


def _high_ports(fraction: Floats) -> Numbers:
    return 1024 + (fraction * 64_512).astype(np.int64)


def _exponential(fraction: Floats) -> Floats:
    drawn: Floats = -np.log1p(-fraction)
    return drawn
