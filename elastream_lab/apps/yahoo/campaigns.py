"""The campaigns of ads, from a table in memory or from Redis."""

import os
import threading
from dataclasses import dataclass

from elastream_lab.apps.results.address import Address, parse_address
from elastream_lab.apps.results.redis_client import Redis
from elastream_lab.apps.yahoo.events import campaign_of_ad

IN_REDIS = "campaign_of_ad"
"""The hash that the table is in."""

Found = list[str | None]


@dataclass(frozen=True)
class CampaignTable:
    campaigns: dict[str, str]

    def __call__(self, ads: list[str]) -> Found:
        return [self.campaigns.get(ad) for ad in ads]


@dataclass(frozen=True)
class CampaignsInRedis:
    """Asks the server for ads that this process has not met; as in the benchmark, each once."""

    address: Address

    def __call__(self, ads: list[str]) -> Found:
        with _LOCK:
            return _KNOWN.setdefault((os.getpid(), self.address.target), _Known(self.address)).campaigns_of(ads)


class _Known:
    """Of one process. Replicas that share it take turns."""

    def __init__(self, address: Address) -> None:
        self._redis = Redis(address)
        self._campaigns: dict[str, str] = {}

    def campaigns_of(self, ads: list[str]) -> Found:
        if new := [ad for ad in ads if ad not in self._campaigns]:
            found = self._redis.run(("HMGET", IN_REDIS, *new))[0]
            self._campaigns |= {ad: name.decode() for ad, name in zip(new, found, strict=True) if name is not None}
        return [self._campaigns.get(ad) for ad in ads]

    def close(self) -> None:
        self._redis.close()


_KNOWN: dict[tuple[int, str], _Known] = {}
_LOCK = threading.Lock()


def forget_campaigns() -> None:
    """Those that this process has read, and its connections."""
    with _LOCK:
        for key in [key for key in _KNOWN if key[0] == os.getpid()]:
            _KNOWN.pop(key).close()


def campaigns_in(database: str) -> CampaignTable | CampaignsInRedis:
    """The generated table; where the database is a Redis it is written there now, and read from there."""
    address, table = parse_address(database), campaign_of_ad()
    if not address.is_redis:
        return CampaignTable(table)
    redis = Redis(address)
    try:
        redis.check()
        redis.run(("HSET", IN_REDIS, *(word for pair in table.items() for word in pair)))
    finally:
        redis.close()
    return CampaignsInRedis(address)
