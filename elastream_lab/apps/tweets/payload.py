"""Tweets as the Twitter API gives them: a tuple's number enters, a JSON document leaves, the same one each time.

Nothing is drawn when a tuple is made. Texts and authors wait in two pools, already written as JSON; the number chooses
one of each, and goes in as the id. So there are far more tweets than entries in the pools. The workload's hot keys are
authors.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from elastream.errors import SettingError
from elastream.workload import EQUAL, KeyChoice, Keys
from elastream_lab.apps.common.payload_files import read_tsv
from elastream_lab.apps.common.scatter import Numbers, scattered
from elastream_lab.apps.tweets.accounts import API_TIME, Account, labelled_accounts
from elastream_lab.apps.tweets.texts import labelled_texts

TEXTS, AUTHORS = 4000, 2000

FIRST_TWEET = datetime(2020, 3, 1)


@dataclass(frozen=True, eq=False)
class TweetPayload:
    """Called with numbers, makes the source's columns."""

    texts: pa.Array
    """JSON between the id and the user."""
    authors: pa.Array
    """JSON from the user to the end."""
    author_of: KeyChoice
    """Which author a tweet has: in a data spike a few of them write much of what comes."""

    def __call__(self, numbers: Numbers) -> dict[str, pa.Array]:
        ids = pa.array(numbers)
        words = ids.cast(pa.string())
        texts = self.texts.take(pa.array(numbers % len(self.texts)))
        authors = self.authors.take(pa.array(self.author_of(numbers, scattered(numbers, len(self.authors)))))
        raw = pc.binary_join_element_wise('{"id": ', words, ', "id_str": "', words, '", ', texts, authors, "")
        return {"id": ids, "raw": raw}


def tweet_payload(file: str | None = None, keys: Keys = EQUAL) -> TweetPayload:
    """Texts from the file (a TSV with created_at and text), else generated. Authors are generated in both cases.

    `keys` are those of the workload; its hot keys are authors.
    """
    random = Random(2020)
    accounts = [account for account, _ in labelled_accounts(AUTHORS, random)]
    if file is None:
        texts = [
            (FIRST_TWEET + timedelta(seconds=37 * number), labelled.text)
            for number, labelled in enumerate(labelled_texts(TEXTS, random))
        ]
    else:
        texts = [(_time(file, line, when), text) for line, (when, text) in read_tsv(file, ("created_at", "text"))]
    return TweetPayload(
        pa.array([text_json(*text) for text in texts]),
        pa.array([author_json(account) for account in accounts]),
        keys.among(len(accounts)),
    )


def text_json(created: datetime, text: str) -> str:
    """A piece of a document: from created_at to where the user begins."""
    return f'"created_at": "{created.strftime(API_TIME)}", "text": {json.dumps(text)}, "lang": "und", '


def author_json(account: Account) -> str:
    """The rest of a document."""
    return f'"user": {json.dumps(account)}}}'


def _time(file: str, line: int, word: str) -> datetime:
    try:
        return datetime.fromisoformat(word)
    except ValueError:
        raise SettingError(
            f"payload {file}, line {line}: expected a time like 2017-08-27 00:05:34 in created_at, got {word[:40]!r}"
        ) from None
