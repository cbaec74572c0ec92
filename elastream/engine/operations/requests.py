"""Requests to a running driver: one file per request in the base, answered by one file.

A client writes `requests/ID.request.json`. The driver carries it out, writes `requests/ID.answer.json` and deletes the request.
Whoever can write into the base can control the run.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

from elastream.errors import ElastreamError, RunFailed
from elastream.lanes.store import Store

FOLDER = "requests"

VERSION = 1

MAX_AGE_S = 30.0
"""An older request is refused: whoever made it does not wait for it any more."""

MAX_BYTES = 64 << 10
"""Of one request."""

MAX_REQUESTS = 50
"""That are carried out in one look; more are refused."""

LAST_ANSWER_S = 3.0
"""How long the answer of a run that is over may take."""

ANSWER_KEPT_S = 120.0
"""An answer that was not fetched is deleted after this time."""

_REQUEST = re.compile(r"([0-9a-f]{32})\.request\.json")
_ANSWER = re.compile(r"([0-9a-f]{32})\.answer\.json")


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Stop the run; tuples that wait are kept for the next one."""


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Read nothing more, serve all that waits, then stop."""


class Scale(msgspec.Struct, frozen=True, tag="scale", forbid_unknown_fields=True):
    """Set replicas of operators, and the size of levels."""

    replicas: dict[str, int] = {}
    levels: dict[str, int] = {}


class Discard(msgspec.Struct, frozen=True, tag="discard", forbid_unknown_fields=True):
    """Drop the tuples that wait for these operators."""

    operators: tuple[str, ...]


Action = Stop | Drain | Scale | Discard


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, as it is in its file."""

    version: int = VERSION
    run: str
    """The run that it is for, by its status document."""
    made_s: float
    """Wall time by the clock of whoever made it."""
    by: str
    """Who made it, for the log."""
    action: Action


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request. Exactly one of the two is not empty."""

    result: str = ""
    error: str = ""


# -- the client


def ask(
    store: Store,
    run: str,
    action: Action,
    by: str,
    *,
    timeout_s: float = 20.0,
    is_running: Callable[[], bool] = lambda: True,
) -> str:
    """Leave a request and wait for its result; raise `RunFailed` if it is refused or not answered."""
    number = uuid.uuid4().hex
    request, answer = f"{FOLDER}/{number}.request.json", f"{FOLDER}/{number}.answer.json"
    document = Request(run=run, made_s=time.time(), by=by, action=action)
    store.write(request, msgspec.json.encode(document))
    until, ended = time.monotonic() + timeout_s, False
    try:
        while time.monotonic() < until:
            with suppress(FileNotFoundError):
                reply = msgspec.json.decode(store.read(answer), type=Answer)
                if reply.error:
                    raise RunFailed(reply.error)
                return reply.result
            if not ended and not is_running():
                # A request to stop may be answered when the run is over already.
                until, ended = min(until, time.monotonic() + LAST_ANSWER_S), True
            time.sleep(0.1)
    finally:
        with suppress(OSError):
            store.delete([request, answer])
    if ended:
        raise RunFailed(f"base {store}: the driver ended before it answered")
    raise RunFailed(
        f"base {store}: the driver did not answer within {timeout_s:g} s, and the request was taken back; "
        "elastream status shows whether it is alive"
    )


# -- the driver


class Received(NamedTuple):
    """A request that shall be carried out, or the reason why not."""

    number: str
    request: Request | None
    refusal: str = ""


class Requests:
    """The driver's side of the folder. In one thread."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._answered: dict[str, float] = {}
        """By number, monotonic time; of answers that may still be there."""

    def open(self) -> None:
        """Delete requests and answers that earlier runs left: no command waits for them."""
        names = [name for name in self._store.names(FOLDER) if _REQUEST.fullmatch(name) or _ANSWER.fullmatch(name)]
        self._store.delete(f"{FOLDER}/{name}" for name in names)

    def look(self) -> Iterator[Received]:
        """New requests, the oldest name first; each must be answered before the next look."""
        sizes = {name: size for name, size in self._store.sizes(FOLDER).items() if _REQUEST.fullmatch(name)}
        for place, (name, size) in enumerate(sorted(sizes.items())):
            number = name.partition(".")[0]
            if number in self._answered:
                # Its file could not be deleted: it was carried out all the same.
                self._store.delete([f"{FOLDER}/{name}"])
                continue
            if place >= MAX_REQUESTS:
                yield Received(number, None, f"refused: more than {MAX_REQUESTS} requests at once; ask again later")
                continue
            if size > MAX_BYTES:
                yield Received(number, None, f"refused: a request may have {MAX_BYTES:,} bytes, got {size:,}")
                continue
            try:
                yield self._checked(number, self._store.read(f"{FOLDER}/{name}"))
            except FileNotFoundError:
                # Taken back.
                continue

    def answer(self, number: str, answer: Answer) -> None:
        self._answered[number] = time.monotonic()
        self._store.write(f"{FOLDER}/{number}.answer.json", msgspec.json.encode(answer))
        self._store.delete([f"{FOLDER}/{number}.request.json"])

    def forget_old_answers(self) -> None:
        """Delete answers that were not fetched."""
        now = time.monotonic()
        old = [number for number, at_s in self._answered.items() if now - at_s > ANSWER_KEPT_S]
        if old:
            self._store.delete(f"{FOLDER}/{number}.answer.json" for number in old)
            for number in old:
                del self._answered[number]

    def _checked(self, number: str, data: bytes) -> Received:
        try:
            request = msgspec.json.decode(data, type=Request)
        except (msgspec.DecodeError, RecursionError) as error:
            return Received(number, None, f"refused: not a request that this Elastream knows: {error}")
        if request.version != VERSION:
            return Received(
                number, None, f"refused: a request of version {request.version}, this Elastream takes {VERSION}"
            )
        if request.run != self._run:
            return Received(
                number, None, "refused: it is for another run with this base; look at its status, and ask again"
            )
        age_s = time.time() - request.made_s
        if not abs(age_s) <= MAX_AGE_S:
            return Received(
                number,
                None,
                f"refused: made {age_s:.0f} s ago by its clock; ask again, and set the clocks of both machines",
            )
        return Received(number, request)


def described(action: Action) -> str:
    """The request in words, for logs."""
    match action:
        case Scale(replicas, levels):
            return "scale " + " ".join(f"{name}={size}" for name, size in {**replicas, **levels}.items())
        case Discard(operators):
            return f"discard {' '.join(operators)}"
        case _:
            return type(action).__name__.lower()


def error_words(error: Exception) -> str:
    return str(error) if isinstance(error, ElastreamError) else f"{type(error).__name__}: {error}"
