"""The complex tweet application of the PSPS paper (figure 12): the flow splits, and joins again.

News is classified by its topic, an opinion by its mood; of both, the author is classified, and all of that is stored.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.classify import ClassifyAuthor, ClassifyText
from elastream_lab.apps.common.lazily import Lazily
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.tweets.models import author_model, kind_model, mood_model, topic_model
from elastream_lab.apps.tweets.parsing import PARSED, parse_tweets
from elastream_lab.apps.tweets.payload import tweet_payload

WITH_KIND = pa.schema([*PARSED, *parse_schema("kind string, kind_share double")])
JOINED = pa.schema([*WITH_KIND, *parse_schema("topic string, sentiment string, share double")])
"""Both branches give these columns; one of topic and sentiment is null."""
STORED = parse_schema(
    "id long, created_at timestamp, screen_name string, kind string, kind_share double, topic string, sentiment string, "
    "share double, author string, author_share double"
)


def topology(
    arrivals: Arrivals | None = None,
    *,
    payload: str | None = None,
    database: str | None = None,
    service_ms: float = 0.0,
    grouping: str = "shuffle",
    replicas: int = 8,
) -> Topology:
    """`payload` is a TSV file with the columns created_at and text; without it texts are generated.

    `database` is a file for SQLite, or postgresql://user:password@host:port/name. `service_ms` is added to the service
    of every tuple in every operator.
    """
    each = service(grouping, replicas, service_ms)
    arrivals = arrivals or usual_arrivals()
    make = tweet_payload(payload, arrivals.keys)
    store = results_in(chosen_database(database, "tweets"), Table("complex_tweets", STORED))
    kind = Lazily(lambda: ClassifyText(kind_model(), "kind", "kind_share"))
    topic = Lazily(lambda: Branch(ClassifyText(topic_model(), "topic", "share"), absent="sentiment"))
    sentiment = Lazily(lambda: Branch(ClassifyText(mood_model(), "sentiment", "share"), absent="topic"))
    author = Lazily(lambda: ClassifyAuthor(author_model(), tuple(STORED.names[:-2])))
    app = Topology("tweets-complex")
    tweets = app.source("tweets", sources.replay(arrivals, "id long, raw string", make))
    parsed = tweets.batch("parse", each.of(parse_tweets), schema=PARSED, **each.how)
    with_kind = parsed.batch("kind", each.of(kind), schema=WITH_KIND, **each.how)
    news = with_kind.batch("news", each.of(Only("news")), **each.how)
    opinions = with_kind.batch("opinions", each.of(Only("opinion")), **each.how)
    with_topic = news.batch("topic", each.of(topic), schema=JOINED, **each.how)
    with_sentiment = opinions.batch("sentiment", each.of(sentiment), schema=JOINED, **each.how)
    with_author = with_topic.batch("author", each.of(author), after=with_sentiment, schema=STORED, **each.how)
    with_author.sink("store", each.of(store), **each.how)
    return app


@dataclass(frozen=True)
class Only:
    """Keeps the tweets of one kind, each with the time at which it was due."""

    kind: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.equal(batch.column("kind"), self.kind))


@dataclass(frozen=True)
class Branch:
    """Classifies, and leaves empty the column that the other branch fills."""

    classify: ClassifyText
    absent: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.classify(batch).append_column(self.absent, pa.nulls(batch.num_rows, pa.string()))
