"""Where the tuples of the applications come from: payloads by number, files, and documents that are broken."""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elastream.engine.worker.functions import apply
from elastream.errors import SettingError
from elastream.topology import DUE, Kind, Operator, OperatorName, Replicas, parse_schema, stored
from elastream_lab.apps.common.payload_files import MOST_ENTRIES, read_names
from elastream_lab.apps.dns import app as dns
from elastream_lab.apps.dns.payload import dns_payload
from elastream_lab.apps.tweets import app as tweets
from elastream_lab.apps.tweets import complex as tweets_complex
from elastream_lab.apps.tweets.parsing import PARSED, parse_tweets
from elastream_lab.apps.tweets.payload import tweet_payload


@pytest.mark.parametrize("payload", [tweet_payload, dns_payload])
def test_the_same_number_gives_the_same_tuple(payload: Callable[[], Any]) -> None:
    whole = pa.table(payload()(np.arange(0, 9000)))
    part = pa.table(payload()(np.arange(4321, 4400)))
    assert whole.slice(4321, 79).equals(part)
    assert whole.column("id").to_pylist() == list(range(9000))
    words = "raw" if "raw" in whole.schema.names else "name"
    assert len(set(whole.column(words).to_pylist())) > 3000


@pytest.mark.parametrize("payload", [tweet_payload, dns_payload])
def test_ten_thousand_tuples_are_made_in_well_under_a_tenth_of_a_second(payload: Callable[[], Any]) -> None:
    make, numbers, took = payload(), np.arange(10_000), []
    for _ in range(5):
        began = time.perf_counter()
        make(numbers)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.05


def test_a_tweet_is_a_document_as_the_api_gives_it() -> None:
    document = json.loads(tweet_payload()(np.array([77]))["raw"][0].as_py())
    assert (document["id"], document["id_str"]) == (77, "77")
    assert {"created_at", "text", "user"} <= document.keys()
    wanted = {"screen_name", "followers_count", "friends_count", "statuses_count", "verified", "created_at"}
    assert wanted <= document["user"].keys()


def test_tweets_of_a_file_come_in_its_order_and_again(tmp_path: Path) -> None:
    file = tmp_path / "tweets.tsv"
    texts = ['He said "no" \\ 🥊', "two\u2028lines", "Ringe çıkmadan"]
    file.write_text("created_at\ttext\n" + "".join(f"2017-08-27 00:05:3{n}\t{t}\n" for n, t in enumerate(texts)) + "\n")
    made = tweet_payload(str(file))(np.arange(7))
    parsed = parse_tweets(pa.RecordBatch.from_pydict(made)).to_pylist()
    assert [row["text"] for row in parsed] == [*texts, *texts, texts[0]]
    assert str(parsed[1]["created_at"]) == "2017-08-27 00:05:31+00:00"
    assert len({row["screen_name"] for row in parsed}) > 3


def test_names_of_a_file_are_one_a_line_or_the_column_host(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("one.com\n\ntwo.org \r\nthree.net")
    (tmp_path / "names.csv").write_text("class,host\nlegit,one.com\n\ndga,two.org\n")
    made = dns_payload(str(tmp_path / "names.txt"))(np.arange(5))
    assert made["name"].to_pylist() == ["one.com", "two.org", "three.net", "one.com", "two.org"]
    assert read_names(str(tmp_path / "names.csv")) == ["one.com", "two.org"]


def test_of_a_large_file_a_sample_from_all_its_parts_travels(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("\n".join(f"name{n}.com" for n in range(50_000)))
    sample = read_names(str(file))
    assert len(sample) <= MOST_ENTRIES
    parts = Counter(int(name[4:-4]) // 10_000 for name in sample)
    assert sorted(parts) == [0, 1, 2, 3, 4] and max(parts.values()) - min(parts.values()) <= 1
    file.write_text("\n".join(f"{'x' * 5000}{n}.com" for n in range(2_000)))
    assert sum(map(len, read_names(str(file)))) < 1_100_000


BAD_FILES = [
    (tweets, "tweets.tsv", None, "payload FILE: cannot be read: No such file or directory"),
    (tweets, "tweets.tsv", b"", "payload FILE, line 1: expected the header ('created_at', 'text'), got ('',)"),
    (tweets, "tweets.tsv", b"text\nhello\n", "line 1: expected the header ('created_at', 'text'), got ('text',)"),
    (tweets, "tweets.tsv", b"created_at\ttext\n", "payload FILE, line 1: expected at least one entry, got none"),
    (tweets, "t.tsv", b"created_at\ttext\n2017-08-27 00:05:34\n", "line 2: expected 2 cells with a tab between, got 1"),
    (tweets_complex, "t.tsv", b"created_at\ttext\n\nnoon\thi\n", "line 3: expected a time like 2017-08-27 00:05:34"),
    (
        tweets,
        "t.tsv",
        b"created_at\ttext\n2017-08-27\t\xff\n",
        "payload FILE, line 2: expected UTF-8; convert the file",
    ),
    (dns, "names.txt", None, "payload FILE: cannot be read: No such file or directory"),
    (dns, "names.txt", b"\n\n", "payload FILE, line 1: expected at least one entry, got none"),
    (dns, "names.csv", b"name,class\na.com,dga\n", "payload FILE, line 1: expected a column host, got 'name, class'"),
    (dns, "names.csv", b"host,class\n\na.com\n", "payload FILE, line 3: expected 2 cells, got 1"),
]


@pytest.mark.parametrize(("app", "name", "content", "message"), BAD_FILES)
def test_a_bad_file_is_refused_by_name_and_line(
    app: Any, name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingError) as refused:
        app.topology(payload=str(file), database=str(tmp_path / "x.sqlite"))
    assert message.replace("FILE", str(file)) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_broken_document_fails_only_its_own_tuple() -> None:
    made = tweet_payload()(np.arange(40))
    raw = made["raw"].to_pylist()
    document = json.loads(raw[0])
    broken = {
        3: raw[3][:-5],
        8: "",
        9: json.dumps({**document, "user": None}),
        10: json.dumps({**document, "created_at": "yesterday"}),
        21: json.dumps({**document, "user": {**document["user"], "followers_count": "many"}}),
        22: json.dumps({**document, "user": {**document["user"], "followers_count": 10**30}}),
        30: json.dumps({**document, "text": None}),
        39: json.dumps({key: value for key, value in document.items() if key != "text"}),
    }
    rows = [broken.get(n, text) for n, text in enumerate(raw)]
    times = [n * 10 for n in range(40)]
    batch = pa.RecordBatch.from_pydict(
        {"id": made["id"], "raw": rows, DUE: times}, schema=stored(parse_schema("id long, raw string"))
    )
    operator = Operator(OperatorName("parse"), Kind.BATCH, parse_tweets, PARSED, Replicas(1, 1, 1))
    parsed = apply(operator, batch)
    assert [failure.row["id"] for failure in parsed.failures] == sorted(broken)
    assert parsed.batches[0].column("id").to_pylist() == [n for n in range(40) if n not in broken]
    assert parsed.batches[0].column(DUE).cast(pa.int64()).to_pylist() == [n * 10 for n in range(40) if n not in broken]
