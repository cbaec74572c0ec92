"""From one Kafka topic to another, sized while it flows, every record once.

    make kafka
    python examples/02_kafka_to_kafka.py 127.0.0.1:9092 clicks pages [BASE_DIR]

Reads what is in `clicks` now, JSON such as {"user": "ann", "page": "/home"}, leaves robots out, counts letters, and writes to
`pages` with the page as the key. Without `end="latest"` it would go on with what comes later. With the same BASE_DIR it goes
on where it was, also after a crash.
"""

import sys

from elastream import Topology, groupings, kafka, run, sinks, sources


def measure(row):
    return {"user": row["user"], "page": row["page"], "letters": len(row["page"])}


def clicks_to_pages(servers, clicks, pages):
    app = Topology("pages")
    source = sources.kafka(servers, clicks, "user string, page string", keep=(), end="latest", most_per_tick=20_000)
    people = app.source("clicks", source).filter("people", lambda row: row["user"] != "robot", replicas=(1, 4))
    measured = people.map(
        "measure",
        measure,
        schema="user string, page string, letters long",
        grouping=groupings.fields("page"),
        replicas=(1, 4),
    )
    measured.sink("pages", sinks.kafka(servers, pages, key="page"), replicas=2)
    return app


if __name__ == "__main__":
    servers, clicks, pages, *base = sys.argv[1:]
    handle = run(clicks_to_pages(servers, clicks, pages), *base, policy="psps", td_s=2)  # until the stream has ended
    print(handle.audit())
    # A reader that must not see anything twice, whatever crashed while it was written:
    options = {"kafka.bootstrap.servers": servers, "subscribe": pages, "includeHeaders": "true"}
    written = kafka.once(handle.spark.read.format("kafka").options(**options).load())
    print(f"{written.count()} records in {pages}")
