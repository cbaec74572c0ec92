"""Accounts as the Twitter API describes them, with the class of each: a random generator enters, user objects leave.

The classes overlap: a small newspaper looks like a popular person, an eager person like a bot.
"""

import math
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from elastream_lab.apps.common.word_list import words
from elastream_lab.apps.tweets.words import TOPIC_WORDS

AUTHORS = ("media", "celebrity", "ordinary", "bot")

Account = dict[str, Any]

API_TIME = "%a %b %d %H:%M:%S +0000 %Y"

_NEWEST = datetime(2020, 1, 1)
"""Accounts are older than every generated tweet."""

_FIRST = words("ana ben carla david elena felix gina hugo ines jack kim leo maria nico olga paul rosa sam tom vera")
_LAST = words("silva smith garcia muller rossi dupont novak jansen kowalski lopez brown costa meyer weber santos")
_MEDIA = words("times daily post herald tribune chronicle gazette radio channel press tv")


class _Shape(NamedTuple):
    """What accounts of a class are like. Pairs are a mean and a spread, of logarithms."""

    followers: tuple[float, float]
    friends: tuple[float, float]
    tweets_a_day: tuple[float, float]
    years: tuple[float, float]
    """The youngest and the oldest."""
    verified: float
    """The share of them, and so below."""
    digits_in_name: float


_SHAPES = {
    "media": _Shape((11.5, 1.6), (6.3, 1.0), (3.0, 0.7), (6.0, 12.0), verified=0.75, digits_in_name=0.10),
    "celebrity": _Shape((12.5, 1.5), (5.8, 1.1), (1.0, 0.9), (4.0, 12.0), verified=0.80, digits_in_name=0.05),
    "ordinary": _Shape((5.3, 1.3), (5.6, 1.0), (0.3, 1.1), (0.5, 11.0), verified=0.01, digits_in_name=0.35),
    "bot": _Shape((4.0, 1.5), (6.8, 1.1), (3.7, 0.9), (0.1, 4.0), verified=0.0, digits_in_name=0.80),
}


def labelled_accounts(count: int, random: Random) -> list[tuple[Account, str]]:
    """Most accounts are ordinary people's."""
    classes = random.choices(AUTHORS, weights=(15, 10, 55, 20), k=count)
    return [(_account(number, author, random), author) for number, author in enumerate(classes)]


def _account(number: int, author: str, random: Random) -> Account:
    shape = _SHAPES[author]
    days = 365 * random.uniform(*shape.years)
    joined = _NEWEST - timedelta(days=days)
    return {
        "id": 10_000_000 + number * 7919,
        "name": f"{random.choice(_FIRST)} {random.choice(_LAST)}".title(),
        "screen_name": _screen_name(author, random.random() < shape.digits_in_name, random),
        "followers_count": int(math.exp(random.gauss(*shape.followers))),
        "friends_count": int(math.exp(random.gauss(*shape.friends))),
        "statuses_count": int(days * math.exp(random.gauss(*shape.tweets_a_day))) + 1,
        "verified": random.random() < shape.verified,
        "created_at": joined.strftime(API_TIME),
    }


def _screen_name(author: str, digits: bool, random: Random) -> str:
    if author == "media":
        name = random.choice(_FIRST + TOPIC_WORDS[random.choice(tuple(TOPIC_WORDS))]).replace("'", "")
        name += random.choice(_MEDIA)
    else:
        name = random.choice(_FIRST) + random.choice(("", "_")) + random.choice(_LAST)
    tail = str(random.randrange(10 ** (6 if author == "bot" else 2))) if digits else ""
    return name[: 15 - len(tail)] + tail
