"""`elastream kafka`: a broker with a topic and a stream of clicks, until Ctrl-C."""

import argparse
import json
import random
import socket
import time
from collections.abc import Callable, Iterator

from elastream.cli.console import plain_console
from elastream.cli.signals import until_asked_to_stop
from elastream.errors import RunFailed, SettingError
from elastream.testing.broker import kafka_broker
from elastream.testing.topic import kafka_topic

PORT = 9092
USERS = ("ann", "bob", "cem", "dan", "eve", "robot")
PAGES = ("/home", "/home", "/home", "/shop", "/shop", "/cart", "/help")

PACE_S = 0.1
"""Between two batches of clicks."""

TELL_S = 10.0
"""Between two lines on the terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", default="clicks", help="the topic that is made; default: clicks")
    parser.add_argument("--partitions", type=int, default=3, metavar="N", help="of the topic; default: 3")
    parser.add_argument("--per-second", type=float, default=50.0, metavar="N", help="clicks per second; default: 50")
    parser.add_argument("--port", type=int, default=PORT, help=f"of the broker, on 127.0.0.1; default: {PORT}")
    parser.add_argument("--seconds", type=float, metavar="S", help="end after this time; default: at Ctrl-C")


def main(args: argparse.Namespace) -> int:
    _check(args)
    console = plain_console()
    console.print("starting Kafka ...")
    written, wanted = 0, until_asked_to_stop()
    with kafka_broker(args.port) as broker, kafka_topic(broker.servers, args.topic, args.partitions) as topic:
        console.print(f"topic {args.topic} on {broker.servers}: {args.per_second:g} clicks per second; Ctrl-C ends it")
        console.print(f"  sources.kafka({broker.servers!r}, {args.topic!r}, 'user string, page string')  reads them")
        told_s = time.monotonic()
        for clicks in _batches(args.per_second, args.seconds, wanted):
            try:
                topic.put(clicks)
            except RunFailed:
                # Ctrl-C in a terminal reaches the broker, too.
                if wanted():
                    raise
                break
            written += len(clicks)
            if time.monotonic() - told_s >= TELL_S:
                told_s = time.monotonic()
                console.print(f"{written:,} clicks")
    console.print(f"{written:,} clicks were written; the broker has ended, and nothing of it stays")
    return 0


def _check(args: argparse.Namespace) -> None:
    """Before anything is started."""
    if not 1 <= args.partitions <= 1000:
        raise SettingError(f"kafka: --partitions must be 1..1000, got {args.partitions}")
    if not 0 <= args.per_second <= 100_000:
        raise SettingError(f"kafka: --per-second must be 0..100000, got {args.per_second:g}")
    if not 1 <= args.port <= 65_535:
        raise SettingError(f"kafka: --port must be 1..65535, got {args.port}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", args.port))
        except OSError as error:
            raise SettingError(
                f"kafka: port {args.port} cannot be used: {error.strerror}; choose another with --port"
            ) from None


def _batches(per_second: float, seconds: float | None, wanted: Callable[[], bool]) -> Iterator[list[str]]:
    """Yield batches of clicks as JSON, as they are due, until the time is over or none is wanted."""
    made, began, draw = 0, time.monotonic(), random.Random(1)
    while wanted():
        elapsed = time.monotonic() - began
        if seconds is not None:
            elapsed = min(elapsed, seconds)
        due = int(elapsed * per_second) - made
        yield [json.dumps({"user": draw.choice(USERS), "page": draw.choice(PAGES)}) for _ in range(due)]
        made += due
        if seconds is not None and elapsed >= seconds:
            return
        time.sleep(PACE_S)
