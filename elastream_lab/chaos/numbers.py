"""The numbers of the built-in flow: what was replayed, written to files and to a topic, and what has arrived at its sink."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elastream.lanes import LedgerState
from elastream_lab.chaos.witness import Verdict

FIRST_OF_FILES, FIRST_OF_TOPIC = 1_000_000_000, 2_000_000_000
"""Numbers that files and the topic bring begin here; those below are replayed."""

BATCH_ROWS, MOST_BATCHES_AHEAD = 100, 3

Put = Callable[[list[str]], object]
"""Takes rows as lines of JSON, all at once."""


def files_in(folder: Path) -> Put:
    """Each call writes a file into `folder`, whole or not at all."""
    folder.mkdir()

    def put(lines: list[str]) -> None:
        name = f"{json.loads(lines[0])['id']}.json"
        new = folder.parent / f"{name}.new"
        new.write_text("\n".join(lines) + "\n")
        new.rename(folder / name)

    return put


class Feeder:
    """Gives a source numbers, and remembers what must become of them."""

    def __init__(self, first: int, put: Put) -> None:
        self._first = self._next = first
        self._put = put
        self.poisoned: set[int] = set()

    @property
    def numbers(self) -> range:
        return range(self._first, self._next)

    def write(self, rows: int, poison: str | None = None) -> None:
        numbers = range(self._next, self._next + rows)
        poisoned = {numbers[rows // 2]} if poison is not None else set[int]()
        self._put([json.dumps({"id": n, "poison": poison if n in poisoned else None}) for n in numbers])
        self._next += rows
        self.poisoned |= poisoned


class Arrived:
    """The numbers at the sink. Reading goes on where it was, for there are many files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, str] = {}
        self.times: Counter[int] = Counter()
        folder.mkdir()

    def look(self) -> int:
        """How many there are now."""
        for name in os.listdir(self._folder):
            if name.endswith(".ids") and name not in self._seen:
                text = self._seen[name] = (self._folder / name).read_text()
                self.times.update(map(int, text.split()))
        return len(self.times)

    @property
    def doubled(self) -> int:
        return sum(times - 1 for times in self.times.values())

    def changed(self) -> int:
        """Deliveries that came again under their name with other rows."""
        return sum((self._folder / name).read_text() != text for name, text in self._seen.items())


class Numbers:
    """The witness of the built-in flow: every number must arrive once, or be poison and in the dead letters."""

    between = 150

    def __init__(self, folder: Path, replayed: int, feeders: list[Feeder]) -> None:
        self._replayed = replayed
        self.feeders = feeders
        self.arrived = Arrived(folder / "sink")

    @property
    def poisoned(self) -> set[int]:
        return {number for feeder in self.feeders for number in feeder.poisoned}

    @property
    def expected(self) -> int:
        return self._replayed + sum(len(feeder.numbers) - len(feeder.poisoned) for feeder in self.feeders)

    def look(self, said: dict[str, Any]) -> int:
        return self.arrived.look()

    def feed(self) -> None:
        """One more batch for every feeder of which few are left to be read."""
        for feeder in self.feeders:
            last = feeder.numbers[-MOST_BATCHES_AHEAD * BATCH_ROWS :]
            arrived = sum(number in self.arrived.times for number in last)
            if arrived + len(feeder.poisoned) >= min(BATCH_ROWS, len(feeder.numbers)):
                feeder.write(BATCH_ROWS)

    def wrong(self) -> int:
        return self.arrived.doubled

    def is_settled(self, said: dict[str, Any]) -> bool:
        return self.arrived.look() >= self.expected and said.get("letters", 0) >= len(self.poisoned)

    def verdict(self, state: LedgerState, *, drained: bool) -> Verdict:
        self.arrived.look()
        poisoned = self.poisoned
        fed = {number for feeder in self.feeders for number in feeder.numbers}
        expected = {*range(self._replayed), *fed} - poisoned
        return Verdict(
            len(expected),
            len(expected - self.arrived.times.keys()),
            self.arrived.doubled,
            self.arrived.changed(),
            None,
            len(poisoned),
        )
