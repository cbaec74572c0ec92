"""The port between the tick and hosts: what the tick hears and what it may ask for. The tick knows no sockets and no Spark."""

from dataclasses import dataclass
from typing import Protocol

from elastream.engine.messages import Receipt, ToHost, Usage


@dataclass(frozen=True)
class HostCame:
    """A host is ready for works."""

    host: int
    incarnation: str
    pid: int
    machine: str
    executor: str
    """Spark's name of it."""


@dataclass(frozen=True)
class HostWent:
    """A host is gone, whatever the reason: what it was doing did not happen."""

    host: int
    incarnation: str


@dataclass(frozen=True)
class HostSaid:
    """Works are done."""

    host: int
    incarnation: str
    receipts: list[Receipt]
    ended: list[str]
    """Segment files to which it will add nothing."""


@dataclass(frozen=True)
class HostUses:
    """What a host and its machine use."""

    host: int
    incarnation: str
    usage: Usage


@dataclass(frozen=True)
class HostsFailed:
    """No host can be had, or one is not what it should be."""

    reason: str


Event = HostCame | HostWent | HostSaid | HostUses | HostsFailed


class HostLink(Protocol):
    """Hosts as the tick sees them."""

    def poll(self, timeout_s: float) -> list[Event]:
        """What has happened; waits for it no longer than this, or until `wake`."""
        ...

    def wake(self) -> None:
        """End the wait of `poll`. Any thread may call this."""
        ...

    def send(self, host: int, message: ToHost) -> None: ...

    def keep(self, host: int) -> None:
        """Have a host of this number from now on: start it, and start it again when it ends."""
        ...

    def end(self, host: int) -> None:
        """Have none of this number any more."""
        ...

    def replace(self, host: int) -> None:
        """End this host, hanging as it may be; another one takes its place and its number."""
        ...

    def last_words(self) -> str:
        """The end of what hosts wrote to their standard error, and why they ended, as far as it is known here."""
        ...

    def close(self) -> None:
        """End all hosts. Returns soon, whatever they do."""
        ...
