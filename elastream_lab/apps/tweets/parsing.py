"""From a tweet's JSON document to columns: raw documents enter, what the classifiers read leaves.

A document that is broken, or lacks a part, raises; the engine then finds the tuples at fault and sets them aside.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.topology import parse_schema
from elastream_lab.apps.tweets.accounts import API_TIME

PARSED = parse_schema(
    "id long, created_at timestamp, text string, screen_name string, followers long, friends long, statuses long, "
    "verified boolean, account_days double"
)


def parse_tweets(batch: pa.RecordBatch) -> pa.RecordBatch:
    documents = [json.loads(raw) for raw in batch.column("raw").to_pylist()]
    users = [document["user"] for document in documents]
    created = _times([document["created_at"] for document in documents])
    joined = _times([user["created_at"] for user in users])
    seconds = np.asarray(created).astype(np.int64) - np.asarray(joined).astype(np.int64)
    return pa.RecordBatch.from_arrays(
        [
            batch.column("id"),
            created.cast(PARSED.field("created_at").type),
            _column([document["text"] for document in documents], "text"),
            _column([user["screen_name"] for user in users], "screen_name"),
            _column([user["followers_count"] for user in users], "followers"),
            _column([user["friends_count"] for user in users], "friends"),
            _column([user["statuses_count"] for user in users], "statuses"),
            _column([user["verified"] for user in users], "verified"),
            pa.array(seconds / 86_400),
        ],
        schema=PARSED,
    )


def _column(values: list[object], name: str) -> pa.Array:
    column = pa.array(values, PARSED.field(name).type)
    if column.null_count:
        raise ValueError(f"{name} is null")
    return column


def _times(words: list[str]) -> pa.Array:
    return pc.strptime(pa.array(words, pa.string()), API_TIME, "s")
