"""Events of the Yahoo streaming benchmark: JSON documents, each made from its number alone.

There are 100 campaigns with 10 ads each. An event is a view, a click or a purchase of an ad by a user on a page. The workload's
hot keys are campaigns.
"""

import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.workload import Arrivals
from elastream.workload.counter_hash import fractions, hashes
from elastream_lab.apps.common.event_times import happened_us
from elastream_lab.apps.common.scatter import Numbers

CAMPAIGNS, ADS_EACH = 100, 10
USERS = PAGES = 100

AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")

_SALT = 0x59_5342_0000
"""Far from the salts by which the workload chooses its keys."""


def made_ids(count: int, what: str) -> list[str]:
    """Ids as the benchmark has them, the same each time; other things have other ids."""
    numbers, salt = np.arange(count, dtype=np.int64), int.from_bytes(what.encode())
    high, low = (hashes(numbers, salt * 2 + half).tolist() for half in (0, 1))
    return [str(uuid.UUID(int=(a << 64) | b, version=4)) for a, b in zip(high, low, strict=True)]


def campaign_of_ad() -> dict[str, str]:
    """The table that events are joined with."""
    campaigns = made_ids(CAMPAIGNS, "campaign")
    return {ad: campaigns[n // ADS_EACH] for n, ad in enumerate(made_ids(CAMPAIGNS * ADS_EACH, "ad"))}


@dataclass(frozen=True, eq=False)
class AdEvents:
    """Called with numbers, makes the source's columns."""

    arrivals: Arrivals
    ads: pa.Array
    users: pa.Array
    pages: pa.Array

    @property
    def skew(self) -> tuple[int, float]:
        return CAMPAIGNS, self.arrivals.keys.zipf

    def __call__(self, numbers: Numbers) -> dict[str, pa.Array]:
        salt = self.arrivals.keys.salt + _SALT

        def drawn(pool: pa.Array, place: int) -> pa.Array:
            return pool.take(pa.array((fractions(numbers, salt + place) * len(pool)).astype(np.int64)))

        campaigns = self.arrivals.keys.among(CAMPAIGNS)(numbers)
        ads = campaigns * ADS_EACH + (fractions(numbers, salt) * ADS_EACH).astype(np.int64)
        words = {
            "user_id": drawn(self.users, 1),
            "page_id": drawn(self.pages, 2),
            "ad_id": self.ads.take(pa.array(ads)),
            "ad_type": drawn(pa.array(AD_TYPES), 3),
            "event_type": drawn(pa.array(EVENT_TYPES), 4),
            "event_time": pa.array(happened_us(self.arrivals, numbers) // 1000).cast(pa.string()),
        }
        pieces: list[pa.Array | str] = []
        for name, column in words.items():
            pieces += [f'{", " if pieces else "{"}"{name}": "', column, '"']
        raw = pc.binary_join_element_wise(*pieces, ', "ip_address": "1.2.3.4"}', "")
        return {"id": pa.array(numbers), "raw": raw}


def ad_events(arrivals: Arrivals) -> AdEvents:
    pools = (made_ids(CAMPAIGNS * ADS_EACH, "ad"), made_ids(USERS, "user"), made_ids(PAGES, "page"))
    return AdEvents(arrivals, *(pa.array(pool) for pool in pools))
