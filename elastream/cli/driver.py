"""The driver of a base, as other terminals reach it: by its status document and by requests."""

import argparse
import os
import socket
import time
from pathlib import Path

from elastream.cli.console import plain_console
from elastream.engine.operations.requests import Action, ask
from elastream.engine.operations.status_document import Liveness, StatusDocument, liveness, read_status
from elastream.errors import SettingError
from elastream.lanes.store import Store

WAIT_S = 20.0
"""How long a command waits for the driver's answer, unless --timeout says otherwise."""

NOT_RUNNING = 1
"""Exit code if no driver runs."""


def add_base_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", help="the base directory of a run: a path, or an address such as s3://bucket/base")


def add_timeout_argument(
    parser: argparse.ArgumentParser, what: str = "the driver's answer", default: float = WAIT_S
) -> None:
    parser.add_argument(
        "--timeout", type=float, default=default, metavar="S", help=f"wait this long for {what}; default: {default:g}"
    )


def open_base(word: str, command: str) -> Store:
    """The store of a base. A directory that is not there, or is no base, is refused."""
    if "://" not in word and not Path(word).is_dir():
        raise SettingError(f"{command}: {word} is no directory; name the base directory of a run")
    store = Store(word)
    if not store.exists("base.json") and not store.names("ledger"):
        raise SettingError(f"{command}: {store} is no base of Elastream; name the base directory of a run")
    return store


def look(store: Store) -> tuple[StatusDocument | None, Liveness]:
    """The newest status, and whether its driver runs."""
    document = read_status(store)
    if document is None:
        return None, Liveness("over", "no driver runs, and no run has written a status")
    return document, liveness(document, time.time())


def request(store: Store, action: Action, command: str, timeout_s: float) -> StatusDocument | None:
    """Have the driver do something, and print its answer. None if no driver runs, which is said."""
    document, live = look(store)
    console = plain_console()
    if document is None or not live.is_running:
        console.print(f"{command}: {live.words}")
        return None
    by = f"process {os.getpid()} on {socket.gethostname()}"
    result = ask(store, document.run, action, by, timeout_s=timeout_s, is_running=lambda: look(store)[1].is_running)
    console.print(result)
    return document


def await_end(store: Store, run: str, timeout_s: float) -> Liveness | None:
    """Wait until a run is over; None if it is not by then."""
    until = time.monotonic() + timeout_s
    while True:
        document, live = look(store)
        if document is None or document.run != run or not live.is_running:
            return live
        if time.monotonic() >= until:
            return None
        time.sleep(0.2)
