"""Results in SQLite and PostgreSQL: each is stored once, and no password is shown."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from flows import each_once, finish
from parts import skip_or_fail
from postgres import PASSWORD, PASSWORD_IN_URL, NoServer, Server, postgres_server
from pyspark.sql import SparkSession
from stored import results_of, stored_deliveries

from elastream import Delivery, start
from elastream.errors import OperatorFailed, SettingError
from elastream.topology import DUE, parse_schema, stored
from elastream.workload import constant
from elastream_lab.apps.results.address import parse_address
from elastream_lab.apps.results.database import close_connections, results_in, stored_rows
from elastream_lab.apps.results.sqlite_store import SqliteResults
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.tweets import app as tweets

NUMBERS = parse_schema("id long, word string")


@pytest.fixture(autouse=True)
def no_connection_stays_open() -> Iterator[None]:
    yield
    close_connections()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        with postgres_server() as running:
            yield running
    except NoServer as reason:
        skip_or_fail(str(reason))


def numbers(*ids: int) -> pa.RecordBatch:
    due = [0] * len(ids)
    columns = {"id": list(ids), "word": [f"nul\0{n}" for n in ids], DUE: due}
    return pa.RecordBatch.from_pydict(columns, schema=stored(NUMBERS))


def delivery(number: int) -> Delivery:
    return Delivery(f"base-{number}-store-0-0", "store", 0, number)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "results.sqlite")
    running: Server = request.getfixturevalue("server")
    return running.url


def test_a_repeated_delivery_is_stored_once(database: str) -> None:
    results = results_in(database, Table("repeated", NUMBERS))
    for number, ids in ((1, (10, 11)), (2, (12,)), (1, (10, 11)), (2, (12,))):
        results(numbers(*ids), delivery(number))
    again = results_in(database, Table("repeated", NUMBERS))
    again(numbers(12), delivery(2))
    assert sorted(stored_rows(results)) == [(10, "nul�10"), (11, "nul�11"), (12, "nul�12")]
    assert {"base-1-store-0-0", "base-2-store-0-0"} <= set(stored_deliveries(results))


COUNTS = parse_schema("base string, word string, count long")


def counts(**words: int) -> pa.RecordBatch:
    columns = {"word": list(words), "count": list(words.values()), DUE: [0] * len(words)}
    return pa.RecordBatch.from_pydict(columns, schema=stored(parse_schema("word string, count long")))


def test_of_the_counts_of_a_word_the_greatest_is_kept_and_every_base_has_its_own(database: str) -> None:
    results = results_in(database, Table("greatest", COUNTS, greatest="count"))
    for number, base, words in (
        (1, "g1", {"war": 7, "peace": 2}),
        (2, "g1", {"war": 5, "peace": 3}),
        (3, "g2", {"war": 1}),
        (2, "g1", {"war": 100}),
    ):
        results(counts(**words), Delivery(f"{base}-store-{number}", "store", 0, number, base))
    assert sorted(stored_rows(results)) == [("g1", "peace", 3), ("g1", "war", 7), ("g2", "war", 1)]


def test_the_best_of_every_base_are_kept_and_equal_ones_by_alphabet(database: str) -> None:
    results = results_in(database, Table("best", COUNTS, greatest="count", best=2))
    for number, base, words in (
        (1, "b1", {"zar": 4, "a": 1, "B": 4}),
        (2, "b2", {"a": 9}),
        (3, "b1", {"a": 4}),
        (4, "b1", {"zar": 5}),
    ):
        results(counts(**words), Delivery(f"{base}-merge-{number}", "merge", 0, number, base))
    assert sorted(stored_rows(results)) == [("b1", "B", 4), ("b1", "zar", 5), ("b2", "a", 9)]


def test_writers_of_the_same_counts_do_not_block_each_other(database: str) -> None:
    results = results_in(database, Table("contended", COUNTS, greatest="count"))
    words = [f"w{n}" for n in range(40)]

    def write(writer: int) -> None:
        for number in range(10):
            shuffled = words[number * writer % 40 :] + words[: number * writer % 40]
            batch = counts(**dict.fromkeys(shuffled, number * 4 + writer))
            results(batch, Delivery(f"c-{writer}-{number}", "store", writer, number, "c"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert sorted(stored_rows(results)) == sorted(("c", word, 39) for word in words)


def test_a_delivery_that_fails_leaves_nothing_and_can_be_given_again(tmp_path: Path) -> None:
    results = results_in(str(tmp_path / "x.sqlite"), Table("cut", NUMBERS))
    store = SqliteResults(results.address)
    with pytest.raises(OperatorFailed, match=r"x\.sqlite: delivery d was not stored: .* 2 columns"):
        store.store(Table("cut", pa.schema([("id", pa.int64())])), "d", [(1,)])
    assert stored_rows(results) == [] and stored_deliveries(results) == []
    assert store.store(results.table, "d", [(1, "one")]) is True
    assert store.store(results.table, "d", [(1, "one")]) is False
    store.close()
    assert stored_rows(results) == [(1, "one")]


def test_eight_writers_at_once_wait_for_each_other(tmp_path: Path) -> None:
    results = results_in(str(tmp_path / "x.sqlite"), Table("busy", NUMBERS))

    def write(writer: int) -> int:
        """Half of the deliveries are given by two writers."""
        store = SqliteResults(results.address)
        new = 0
        for number in range(30):
            name = f"{number}" if number % 2 else f"{writer}-{number}"
            new += store.store(results.table, name, [(number, str(writer))] * 20)
        store.close()
        return new

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 8 * 15 + 15
    assert Counter(row[0] % 2 for row in stored_rows(results)) == {0: 8 * 15 * 20, 1: 15 * 20}


def test_a_table_with_other_columns_is_refused(database: str) -> None:
    results_in(database, Table("taken", NUMBERS))
    message = "expected a table taken with columns id, found id, word; name another database, or rename that table"
    with pytest.raises(SettingError, match=message):
        results_in(database, Table("taken", parse_schema("id long")))


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are notes" * 100)
    with pytest.raises(SettingError, match=r"notes\.txt: file is not a database; name a file"):
        results_in(str(tmp_path / "notes.txt"), Table("t", NUMBERS))


# PostgreSQL


def test_an_application_stores_in_postgresql(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    app = tweets.topology(constant(400, 1), database=server.url, replicas=3)
    with start(app, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        handle.scale("store", 3)
        finish(handle)
        assert handle.dead_letters().num_rows == 0
    rows = stored_rows(results_of(app.build()))
    assert Counter(row[0] for row in rows) == each_once(400)
    assert str(next(row[1] for row in rows if row[0] == 1).astimezone(None)) > "2020-03-01"


def test_a_server_that_comes_back_is_found_again(server: Server) -> None:
    results = results_in(server.url, Table("patient", NUMBERS))
    results(numbers(1), delivery(101))
    server.stop()

    def start_later() -> None:
        time.sleep(0.4)
        server.start()

    with ThreadPoolExecutor(1) as pool:
        back = pool.submit(start_later)
        results(numbers(2), delivery(102))
        back.result()
    assert sorted(row[0] for row in stored_rows(results)) == [1, 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: url.replace("/postgres", "/nowhere"), 'database "nowhere" does not exist'),
        (lambda url: url.replace(PASSWORD_IN_URL, "wr0ng%2Fsecret"), "password authentication failed"),
        (lambda url: url.replace(PASSWORD_IN_URL, "wr0ng%zzsecret"), "invalid percent-encoded token"),
        (lambda url: url.replace(PASSWORD_IN_URL, PASSWORD), "write each of : @ / ? # and space as %"),
        (lambda url: url.replace(f":{PASSWORD_IN_URL}@", "@") + "?password=wr0ng", "password authentication failed"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"), "postgresql://elastream@127.0.0.1:1"),
        (lambda url: url.replace("postgresql:", "mysql:"), "expected a file's path or postgresql://"),
        (lambda url: f"host=127.0.0.1 user=elastream password={PASSWORD}", "expected a file's path or postgresql://"),
    ],
)
def test_a_url_that_does_not_work_is_said_in_one_line_without_the_password(
    server: Server, change: Callable[[str], str], reason: str
) -> None:
    with pytest.raises(SettingError) as refused:
        results_in(change(server.url), Table("t", NUMBERS))
    said = str(refused.value)
    assert reason in said and "\n" not in said
    for secret in (PASSWORD, PASSWORD_IN_URL, "s3cret", "signs", "wr0ng"):
        assert secret not in said


def test_an_address_does_not_show_its_password() -> None:
    address = parse_address("postgresql://me:p%40ss@db.example:5432/results?sslmode=require&sslpassword=hush")
    assert address.shown == "postgresql://me@db.example:5432/results"
    assert repr(address) == "Address(shown='postgresql://me@db.example:5432/results')"
    assert address.hide("p%40ss or p@ss\nor hush") == "*** or *** or ***"


def test_without_psycopg_the_fix_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingError, match=r"needs psycopg; pip install 'elastream\[postgres\]'"):
        results_in("postgresql://me@127.0.0.1/results", Table("t", NUMBERS))
