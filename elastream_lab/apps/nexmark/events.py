"""Events of an auction site by the rules of the Nexmark benchmark, each made from its number alone.

Of 50 events in a row the first is a new person, the next 3 are new auctions, and 46 are bids. Numbers of persons and auctions
follow from that, so no event needs to know another one. Half of the bids are for the hot auction, the first of the newest
hundred; the others are for one of the auctions that still run. Three of four bids come from the hot bidder and three of
four auctions from the hot seller, the second and the first of the newest hundred persons. Texts, which neither query
reads, are left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.topology import parse_schema
from elastream.workload import Arrivals
from elastream.workload.counter_hash import fractions
from elastream_lab.apps.common.event_times import happened_us
from elastream_lab.apps.common.scatter import Numbers
from elastream_lab.apps.common.skew import zipf_of_share

EVENTS = parse_schema("id long, at timestamp, kind string, auction long, person long, price long")
"""`person` is the new one, an auction's seller or a bid's bidder; `price` is an auction's first price or a bid's."""

KINDS = ("person", "auction", "bid")

FIRST_ID = 1000
"""Of persons and of auctions."""

PERSONS, AUCTIONS, ALL = 1, 3, 50
"""So many of so many events; the others are bids."""

HOT_EVERY = 100
"""Of so many auctions, or persons, one is hot while the next so many come."""

COLD_AUCTIONS, COLD_PERSONS = 1 / 2, 1 / 4
"""The shares of bids, and of auctions, that are not a hot one's."""

RUNNING, ACTIVE, AHEAD = 100, 1000, 10
"""Auctions and persons that are drawn from: the newest ones, and a few that are yet to come."""


@dataclass(frozen=True)
class Nexmark:
    """Called with numbers, makes the source's columns. An event happens when it is due.

    The workload's hot keys are old auctions, and persons: in a data spike they get, and make, their share of the bids.
    """

    arrivals: Arrivals
    key: str
    """The column that a query tells bids apart by: `auction` or `person`."""

    @property
    def skew(self) -> tuple[int, float]:
        """How many keys there are at a time, and the exponent by which the hot one has its share."""
        if self.arrivals.keys.zipf:
            return RUNNING, self.arrivals.keys.zipf
        count, cold = (RUNNING, COLD_AUCTIONS) if self.key == "auction" else (ACTIVE, COLD_PERSONS)
        return count, zipf_of_share(count, 1 - cold)

    def __call__(self, numbers: Numbers) -> dict[str, Any]:
        draw = _Draws(numbers, self.arrivals.keys.salt)
        epoch, place = np.divmod(numbers, ALL)
        is_person, is_bid = place < PERSONS, place >= PERSONS + AUCTIONS
        person = epoch * PERSONS + np.minimum(place, PERSONS - 1)
        auction = epoch * AUCTIONS + np.minimum(place - PERSONS, AUCTIONS - 1)
        running = np.maximum(auction - RUNNING, 0)
        bid_for = np.where(
            draw.share() < COLD_AUCTIONS,
            running + draw.below(auction - running + 1 + AHEAD),
            auction // HOT_EVERY * HOT_EVERY,
        )
        active = np.minimum(person + 1, ACTIVE)
        somebody = person + 1 - active + draw.below(active + AHEAD)
        hot_person = person // HOT_EVERY * HOT_EVERY + is_bid
        seller_or_bidder = np.where(draw.share() < COLD_PERSONS, somebody, hot_person)
        price = np.rint(10.0 ** (draw.share() * 6.0) * 100.0).astype(np.int64)
        spiked = self.arrivals.keys.among(RUNNING)(numbers, np.full(len(numbers), -1))
        hot = is_bid & (spiked >= 0)
        auctions = np.where(hot, spiked, np.where(is_bid, bid_for, auction))
        persons = np.where(hot, spiked, np.where(is_person, person, seller_or_bidder))
        return {
            "id": numbers,
            "at": pa.array(happened_us(self.arrivals, numbers)).cast(EVENTS.field("at").type),
            "kind": pa.array(KINDS).take(pa.array(np.where(is_person, 0, np.where(is_bid, 2, 1)))),
            "auction": pa.array(auctions + FIRST_ID, mask=is_person),
            "person": persons + FIRST_ID,
            "price": pa.array(price, mask=is_person),
        }


class _Draws:
    """Random numbers of events: each call gives others, the same for an event wherever it is made."""

    def __init__(self, numbers: Numbers, salt: int) -> None:
        self._numbers = numbers
        # Far from the salts by which the workload chooses its keys.
        self._salt = salt + 0x4E58_0000

    def share(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        self._salt += 1
        return fractions(self._numbers, self._salt)

    def below(self, ends: Numbers) -> Numbers:
        return (self.share() * ends).astype(np.int64)
