"""The Yahoo streaming benchmark: views are counted exactly, and stored in SQLite or a real Redis."""

import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flows import finish, replay_of
from parts import skip_or_fail
from redis_server import PASSWORD, PASSWORD_IN_URL, NoRedis, RedisServer, redis_server
from spikes import hot_workload
from stored import results_of, stored_deliveries

from elastream import Delivery
from elastream.engine.worker.functions import apply
from elastream.errors import OperatorFailed, SettingError
from elastream.testing import LocalEngine
from elastream.topology import DUE, Graph, parse_schema, stored
from elastream.workload import constant, parse_workload
from elastream.workload.replay import with_arrivals
from elastream_lab.apps.results.address import parse_address
from elastream_lab.apps.results.database import close_connections, results_in, stored_rows
from elastream_lab.apps.results.redis_client import Redis, encoded
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.yahoo import app as yahoo
from elastream_lab.apps.yahoo.app import JoinCampaigns, count_views, parse_events
from elastream_lab.apps.yahoo.campaigns import IN_REDIS, campaigns_in, forget_campaigns
from elastream_lab.apps.yahoo.events import ad_events, campaign_of_ad

COUNTS = parse_schema("base string, word string, count long")


@pytest.fixture(autouse=True)
def no_connection_stays_open() -> Iterator[None]:
    yield
    close_connections()
    forget_campaigns()


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    try:
        with redis_server() as running:
            yield running
    except NoRedis as reason:
        skip_or_fail(str(reason))


def documents(graph: Graph, count: int) -> list[dict[str, Any]]:
    return [json.loads(raw) for raw in replay_of(graph).rows(0, count).column("raw").to_pylist()]


def views(graph: Graph, count: int) -> Counter[tuple[str, int]]:
    """By campaign and start of the window in seconds, counted anew from the documents."""
    campaigns = campaign_of_ad()
    return Counter(
        (campaigns[event["ad_id"]], int(event["event_time"]) // 10_000 * 10)
        for event in documents(graph, count)
        if event["event_type"] == "view"
    )


def in_table(graph: Graph) -> dict[tuple[str, int], int]:
    rows = stored_rows(results_of(graph))
    assert len({row[0] for row in rows}) == 1
    found = {(campaign, int(np.datetime64(start[:19], "s").astype(int))): n for _, campaign, start, n in rows}
    assert len(found) == len(rows)
    return found


# -- what comes


def test_events_are_as_the_benchmark_has_them_and_depend_on_their_number_alone() -> None:
    events = ad_events(parse_workload("constant:per_second=500,seconds=20", seed=3))
    raw = events(np.arange(6000))["raw"]
    rows = [json.loads(document) for document in raw.to_pylist()]
    names = ["user_id", "page_id", "ad_id", "ad_type", "event_type", "event_time", "ip_address"]
    assert all(list(row) == names for row in rows)
    kinds = Counter(row["event_type"] for row in rows)
    assert set(kinds) == {"view", "click", "purchase"} and min(kinds.values()) > 1800
    assert {row["ad_id"] for row in rows} <= set(campaign_of_ad()) and len({row["ad_id"] for row in rows}) > 950
    assert int(rows[-1]["event_time"]) - int(rows[0]["event_time"]) == pytest.approx(5999 * 2, abs=1)
    assert events(np.array([77, 5]))["raw"].to_pylist() == [raw[77].as_py(), raw[5].as_py()]
    other = ad_events(parse_workload("constant:per_second=500,seconds=20", seed=4))
    assert not other(np.arange(6000))["raw"].equals(raw)


def test_there_are_a_hundred_campaigns_of_ten_ads_and_hot_ones_in_a_data_spike() -> None:
    table = campaign_of_ad()
    assert Counter(Counter(table.values()).values()) == {10: 100} and len(table) == 1000
    raw = ad_events(hot_workload(share=0.6, hot_keys=1))(np.arange(30_000, 34_000))["raw"].to_pylist()
    campaigns = Counter(table[json.loads(document)["ad_id"]] for document in raw)
    assert campaigns.most_common(1)[0][1] / 4000 == pytest.approx(0.6, abs=0.03)


# -- operators


def test_a_document_that_is_broken_is_set_aside_alone(tmp_path: Path) -> None:
    graph = yahoo.topology(constant(10, 1), database=str(tmp_path / "x.sqlite")).build()
    good = '{"ad_id": "a", "event_type": "view", "event_time": "1436918400000", "more": 1}'
    raw = [good, "{", '{"ad_id": "a"}', good.replace('"1436', '"x1436'), good]
    batch = pa.RecordBatch.from_pydict(
        {"id": range(5), "raw": raw, DUE: [0] * 5}, schema=stored(graph.sources[0].schema)
    )
    made = apply(graph["parse"], batch)
    assert sum(part.num_rows for part in made.batches) == 2
    assert sorted(failure.batch.column("id")[0].as_py() for failure in made.failures) == [1, 2, 3]
    assert parse_events(batch.slice(0, 1)).column("at")[0].as_py().isoformat() == "2015-07-15T00:00:00+00:00"


def test_a_view_of_an_ad_that_nobody_knows_is_left_out() -> None:
    at = [19_999_999, 20_000_000, 0]
    schema = stored(yahoo.VIEWS)
    batch = pa.RecordBatch.from_pydict({"ad": ["b", "a", "c"], "at": at, DUE: [1, 2, 3]}, schema=schema)
    joined = JoinCampaigns(lambda ads: [{"a": "A", "b": "B"}.get(ad) for ad in ads])(batch)
    starts = joined.column("window_start").cast(pa.int64()).to_pylist()
    assert joined.column("campaign").to_pylist() == ["B", "A"] and starts == [10_000_000, 20_000_000]


def test_windows_that_have_grown_are_given_with_their_new_counts() -> None:
    rows = {"campaign": ["A", "B", "A", "A"], "window_start": [0, 0, 0, 10], DUE: [4, 3, 2, 1]}
    batch = pa.RecordBatch.from_pydict(rows, schema=stored(yahoo.JOINED))
    state = yahoo.JOINED.append(pa.field("total", pa.int64()))
    known = pa.RecordBatch.from_pydict(
        {"campaign": ["B", "A", "A"], "window_start": [0, 10, 0], "total": [7, 0, 5]}, schema=state
    )
    counts, after = count_views(batch, known)
    assert counts.column("views").to_pylist() == after.column("total").to_pylist() == [7, 8, 1]
    assert counts.column(DUE).cast(pa.int64()).to_pylist() == [2, 3, 1]


# -- flows


def check_flow(database: str, folder: Path) -> Graph:
    """Rescales and kills; the counts are those of the documents."""
    app = yahoo.topology(constant(200, 24), database=database).build()
    hastened = with_arrivals(app, constant(3200, 1.5))
    chance, kills = random.Random(4), 0
    with LocalEngine(processes=True).start(hastened, str(folder / "base")) as handle:
        while not handle.await_end(0.15):
            handle.scale(chance.choice([str(o.name) for o in app.served]), chance.randint(1, 4))
            hosts = handle.status.hosts
            if kills < 2 and len(hosts) > 1 and handle.totals("parse").processed > 1200 * (kills + 1):
                kills += 1
                with suppress(ProcessLookupError):
                    os.kill(hosts[kills % len(hosts)].pid, signal.SIGKILL)
        finish(handle)
        assert handle.audit().problems == () and handle.dead_letters().num_rows == 0
    expected = views(app, 4800)
    assert kills > 0 and expected.total() > 1500 and len(expected) > 250
    assert in_table(app) == expected
    return app


def test_views_are_counted_exactly_while_replicas_change_and_hosts_are_killed(tmp_path: Path) -> None:
    app = check_flow(str(tmp_path / "x.sqlite"), tmp_path)
    assert [str(operator.name) for operator in app.served] == ["parse", "views", "join", "count", "store"]


# -- Redis


def test_a_flow_reads_its_campaigns_from_redis_and_stores_there(redis: RedisServer, tmp_path: Path) -> None:
    app = check_flow(redis.url, tmp_path)
    client = Redis(parse_address(redis.url))
    campaign, count = next(iter(views(app, 4800).items()))
    base = stored_rows(results_of(app))[0][0]
    name = f"campaign_views:{base}:{campaign[0]}"
    assert client.run(
        ("HLEN", IN_REDIS), ("HGET", name, f"{np.datetime64(campaign[1], 's')}".replace("T", " ") + ".000000+00:00")
    ) == [
        1000,
        str(count).encode(),
    ]
    client.close()


def test_campaigns_are_asked_for_once_and_unknown_ads_have_none(redis: RedisServer) -> None:
    lookup, client = campaigns_in(redis.url), Redis(parse_address(redis.url))
    ad, campaign = next(iter(campaign_of_ad().items()))
    assert lookup([ad, "nobody's"]) == [campaign, None]
    client.run(("HSET", IN_REDIS, "nobody's", "found later"), ("HDEL", IN_REDIS, ad))
    assert lookup([ad, "nobody's"]) == [campaign, "found later"]
    client.run(("HDEL", IN_REDIS, "nobody's"))
    client.close()


def counts(**words: int) -> pa.RecordBatch:
    columns = {"word": list(words), "count": list(words.values()), DUE: [0] * len(words)}
    return pa.RecordBatch.from_pydict(columns, schema=stored(parse_schema("word string, count long")))


def test_of_counts_the_greatest_is_kept_and_a_delivery_counts_once(redis: RedisServer) -> None:
    results = results_in(redis.url, Table("greatest", COUNTS, greatest="count"))
    for number, base, words in (
        (1, "g:1", {"war": 9, "peace": 2, "élan: $1\r\n": 4}),
        (2, "g:1", {"war": 10, "peace": 1}),
        (3, "g2", {"war": 1}),
        (2, "g:1", {"war": 100}),
    ):
        results(counts(**words), Delivery(f"{base}-store-{number}", "store", 0, number, base))
    assert sorted(stored_rows(results)) == [
        ("g2", "war", 1),
        ("g:1", "peace", 2),
        ("g:1", "war", 10),
        ("g:1", "élan: $1\r\n", 4),
    ]
    assert {"g:1-store-1", "g:1-store-2", "g2-store-3"} <= set(stored_deliveries(results))


def test_a_server_that_comes_back_is_found_again_with_all_that_was_stored(redis: RedisServer) -> None:
    results = results_in(redis.url, Table("patient", COUNTS, greatest="count"))
    results(counts(a=1), Delivery("p-1", "store", 0, 1, "p"))
    redis.stop()

    def start_later() -> None:
        time.sleep(0.4)
        redis.start()

    with ThreadPoolExecutor(1) as pool:
        back = pool.submit(start_later)
        results(counts(b=2), Delivery("p-2", "store", 0, 2, "p"))
        back.result()
    assert sorted(stored_rows(results)) == [("p", "a", 1), ("p", "b", 2)]


def test_what_the_server_refuses_is_said_and_the_next_command_gets_its_own_reply(redis: RedisServer) -> None:
    client = Redis(parse_address(redis.url))
    client.run(("SET", "plain", "x"))
    with pytest.raises(OperatorFailed, match=r"database redis://127\.0\.0\.1:\d+/3: WRONGTYPE"):
        client.run(("SET", "other", "y"), ("HGET", "plain", "field"), ("GET", "other"))
    assert client.run(("GET", "other"), ("GET", "nothing"), ("MGET", "plain", "nothing")) == [b"y", None, [b"x", None]]
    client.run(("DEL", "plain", "other"))
    client.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: url.replace(PASSWORD_IN_URL, "wr0ng"), "WRONGPASS"),
        (lambda url: url.replace(f":{PASSWORD_IN_URL}@", ""), "NOAUTH Authentication required"),
        (lambda url: url.replace("/3", "/9999"), "DB index is out of range"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1")[:-3], "check that the server runs, and the URL"),
        (lambda url: re.sub(r":\d+/3", ":99999/3", url), "Port out of range 0-65535"),
        (lambda url: url.replace(PASSWORD_IN_URL, PASSWORD), "write each of : @ / ? # and space in them as %"),
        (lambda url: url.replace("redis:", "rediss:"), "for counts also redis://host:port/0"),
    ],
)
def test_a_url_that_does_not_work_is_said_in_one_line_without_the_password(
    redis: RedisServer, change: Callable[[str], str], reason: str
) -> None:
    with pytest.raises(SettingError) as refused:
        yahoo.topology(database=change(redis.url))
    said = str(refused.value)
    assert reason in said and "\n" not in said
    for secret in (PASSWORD, PASSWORD_IN_URL, "s3cret", "signs", "wr0ng"):
        assert secret not in said


def test_redis_is_refused_where_rows_are_no_counts(redis: RedisServer) -> None:
    message = "expected counts, and rows is another kind of table; name a SQLite file or postgresql://"
    with pytest.raises(SettingError, match=message):
        results_in(redis.url, Table("rows", COUNTS))


def test_a_command_is_an_array_of_words_behind_their_lengths() -> None:
    assert encoded(("SET", "é", 12, b"\r\n")) == b"*4\r\n$3\r\nSET\r\n$2\r\n\xc3\xa9\r\n$2\r\n12\r\n$2\r\n\r\n\r\n"


def test_a_redis_address_does_not_show_its_password() -> None:
    address = parse_address("redis://me:p%40ss@db.example:6380/2")
    assert address.shown == "redis://me@db.example:6380/2" and "p%40ss" not in repr(address)
    assert address.hide("p%40ss or p@ss") == "*** or ***"
    assert parse_address("redis://db.example").shown == "redis://db.example"
