"""WordCount of the Dr-Stream paper (figure 18): how often does every word come?

Sentences enter; a reader cleans each, `split` cuts it into words, `count` counts these, and the counts are stored.
"""

import pyarrow as pa
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.topology import DUE, Topology
from elastream.workload import Arrivals
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.words.counts import STORED, WORDS, add_count, split_words
from elastream_lab.apps.words.payload import sentence_payload


def topology(
    arrivals: Arrivals | None = None,
    *,
    payload: str | None = None,
    database: str | None = None,
    service_ms: float = 0.0,
    grouping: str = "fields",
    replicas: int = 4,
    zipf: float = 1.0,
    vocabulary: int = 5000,
) -> Topology:
    """`payload` is a text; without it sentences are made of `vocabulary` words, the r-th as frequent as 1 / r**`zipf`.

    `database` is a file for SQLite, or postgresql://user:password@host:port/name. `service_ms` is added to the service
    of every tuple in every operator. `grouping` is the one in front of `count`.
    """
    each = service(grouping, replicas, service_ms, key="word")
    arrivals = arrivals or usual_arrivals()
    make = sentence_payload(payload, arrivals.keys, zipf=zipf, vocabulary=vocabulary)
    store = results_in(chosen_database(database, "wordcount"), Table("words", STORED, greatest="count"))
    app = Topology("wordcount")
    text = app.source("text", sources.replay(arrivals, "id long, raw string", make))
    sentences = text.batch("reader", each.of(read_sentences), schema="sentence string", **each.sizes)
    words = sentences.batch("split", each.of(split_sentences), schema=WORDS, **each.sizes)
    add_count(words, each).sink("store", each.of(store), **each.sizes)
    return app


def read_sentences(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each text with one space between its words and none at its ends."""
    sentences = pc.utf8_trim_whitespace(pc.replace_substring_regex(batch.column("raw"), r"\s+", " "))
    return pa.RecordBatch.from_arrays([sentences, batch.column(DUE)], names=["sentence", DUE])


def split_sentences(batch: pa.RecordBatch) -> pa.RecordBatch:
    return split_words(batch, "sentence")
