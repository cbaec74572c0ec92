"""Generated network traffic: numbers of flows enter; NetFlow-like records leave, labelled with the attack they belong to.

Ordinary flows go from many clients to a few servers, both by Zipf's law, for the usual services. The four kinds of attack are ways
of sending a great number of requests to one target:

- `syn-flood`: one small TCP packet each, from forged addresses that never come again;
- `udp-flood`: heavy UDP flows from some machines to any port;
- `amplification`: long answers of DNS and NTP servers that the target has not asked;
- `http-flood`: requests as anybody's, only too many, from several hundred machines.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from elastream.apps.flow_clock import KINDS, flow_clock
from elastream.topology import parse_schema
from elastream.workload.counter_hash import Floats, Numbers, fractions, hashes

RECORD = parse_schema(
    "time timestamp, source string, destination string, protocol string, source_port long, port long, packets long, "
    "bytes long, ms long, label string"
)
"""Columns of a flow record, in the order of a line."""

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
        service = np.searchsorted(np.cumsum(_WEIGHT)[:-1], chance())
        source = _CLIENT_NET + _zipf(chance(), CLIENTS, 0.7) * 37
        destination = _SERVER_NET + _zipf(chance(), SERVERS, 0.8)
        port, source_port = _PORT[service], 1024 + (chance() * 64_512).astype(np.int64)
        packets = 1 + (_PACKETS[service] * _exponential(chance())).astype(np.int64)
        size, pause = _SIZE[service] * (0.5 + chance()), _PAUSE[service] * _exponential(chance())
        protocol = service

        place = clock.attack_of(numbers, self.seed * 31 + 7)
        kind = np.array([KINDS.index(attack.kind) for attack in clock.attacks] or [0])[place]
        kind = np.where(place >= 0, kind, -1)
        if (kind >= 0).any():
            u, v, forged = chance(), chance(), hashes(numbers, self.seed + 99)
            victim = _SERVER_NET + hashes(place, self.seed + 5).astype(np.int64) % np.int64(SERVERS)
            bots = _BOT_NET + place * 4096
            destination = np.where(kind >= 0, victim, destination)
            sources = (
                (forged >> np.uint64(32)).astype(np.int64) % 0xDF000000 + 0x01000000,
                bots + (u * 40).astype(np.int64) * 13,
                _REFLECTOR_NET + (u * 250).astype(np.int64),
                bots + (u * 400).astype(np.int64) * 7,
            )
            anywhere = 1024 + (v * 64_512).astype(np.int64)
            ports = (np.where(place % 2, 80, 443), anywhere, anywhere, np.int64(80))
            long = (np.int64(1), 20 + (v * 200).astype(np.int64), 4 + (v * 8).astype(np.int64), packets)
            heavy = (40 + 20 * v, 900 + 500 * v, 1300 + 150 * v, size)
            of = (0, 2, 2, 1)
            for n in range(len(KINDS)):
                mine = kind == n
                source, port = np.where(mine, sources[n], source), np.where(mine, ports[n], port)
                packets, size = np.where(mine, long[n], packets), np.where(mine, heavy[n], size)
                protocol = np.where(mine, of[n], protocol)
                pause = np.where(mine & (n < 3), v, pause)
            source_port = np.where(kind == 2, np.where(place % 2, 53, 123), source_port)
        source_port = np.where(_PORT[protocol] == 0, 0, source_port)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(clock.at_us(numbers)).cast(pa.timestamp("us", "UTC")),
                addresses(source),
                addresses(destination),
                _PROTOCOL.take(pa.array(protocol)),
                pa.array(source_port),
                pa.array(np.where(_PORT[protocol] == 0, 0, port)),
                pa.array(packets),
                pa.array((packets * size).astype(np.int64)),
                pa.array((pause * (packets - 1)).astype(np.int64)),
                pa.array(["", *KINDS]).take(pa.array(kind + 1)),
            ],
            schema=RECORD,
        )


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


def _exponential(fraction: Floats) -> Floats:
    drawn: Floats = -np.log1p(-fraction)
    return drawn
