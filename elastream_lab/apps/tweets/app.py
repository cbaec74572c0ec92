"""The tweet application of the PSPS paper (figure 7): what is a tweet about, and who wrote it?

Documents of the Twitter API enter; each is parsed, its content and its author are classified, and that is stored.
"""

import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.classify import ClassifyAuthor, ClassifyText
from elastream_lab.apps.common.lazily import Lazily
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.tweets.models import author_model, topic_model
from elastream_lab.apps.tweets.parsing import PARSED, parse_tweets
from elastream_lab.apps.tweets.payload import tweet_payload

WITH_TOPIC = pa.schema([*PARSED, *parse_schema("topic string, topic_share double")])
STORED = parse_schema(
    "id long, created_at timestamp, screen_name string, topic string, topic_share double, author string, author_share double"
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
    store = results_in(chosen_database(database, "tweets"), Table("tweets", STORED))
    content = Lazily(lambda: ClassifyText(topic_model(), "topic", "topic_share"))
    author = Lazily(lambda: ClassifyAuthor(author_model(), tuple(STORED.names[:-2])))
    app = Topology("tweets")
    tweets = app.source("tweets", sources.replay(arrivals, "id long, raw string", make))
    parsed = tweets.batch("parse", each.of(parse_tweets), schema=PARSED, **each.how)
    with_topic = parsed.batch("content", each.of(content), schema=WITH_TOPIC, **each.how)
    with_author = with_topic.batch("author", each.of(author), schema=STORED, **each.how)
    with_author.sink("store", each.of(store), **each.how)
    return app
