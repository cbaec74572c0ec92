"""Addresses of Spark's masters: one enters; where it is, and that somebody listens there, leaves."""

import re
import socket

from elastream.errors import SettingError

PATIENCE_S = 5.0
"""How long a master may take to answer."""


def is_local(master: str) -> bool:
    """True when the executor is the driver's own process: nothing has to be shared between machines."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def is_on_loopback(master: str) -> bool:
    """True for a standalone cluster that cannot leave this machine."""
    hosts = {host for host, _ in _addresses(master)}
    return bool(hosts) and hosts <= {"127.0.0.1", "localhost", "::1"}


def check_master(master: str) -> None:
    """A standalone master must answer: Spark itself would try for a minute and then say little."""
    addresses = _addresses(master)
    if addresses and not any(_answers(*address) for address in addresses):
        raise SettingError(f"master {master}: nobody answers there; start the master, or mend the address")


def _addresses(master: str) -> list[tuple[str, int]]:
    """Those of `spark://host:port,host:port`; other masters have their own ways."""
    if not master.startswith("spark://"):
        return []
    found = re.findall(r"(?:^|,)(\[[^\]]+\]|[^:,\[\]/]+):(\d+)(?=,|$)", master.removeprefix("spark://"))
    if not found:
        raise SettingError(f"master {master}: expected spark://HOST:PORT, for example spark://10.0.0.5:7077")
    return [(host.strip("[]"), int(port)) for host, port in found]


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=PATIENCE_S).close()
    except OSError:
        return False
    return True
