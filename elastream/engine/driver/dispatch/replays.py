"""How far replays have been read: which tuples are due, which are being made, and when the next one is due."""

import math
from typing import Any

from elastream.engine.messages import SourceWork
from elastream.lanes.state import LedgerState
from elastream.topology import Graph
from elastream.workload import Arrivals
from elastream.workload.replay import Replay


class Replays:
    """The ledger has, per replay, the next tuple to make and the ranges before it that are still missing."""

    def __init__(self, graph: Graph, state: LedgerState) -> None:
        self._state = state
        self._arrivals: dict[str, Arrivals] = {
            source.name: source.source.arrivals for source in graph.sources if isinstance(source.source, Replay)
        }
        self._parts: dict[str, int] = {source.name: source.replicas.start for source in graph.sources}
        self._turns: dict[tuple[str, int], None] = {
            (name, part): None for name in self._arrivals for part in range(self._parts[name])
        }
        """All parts of sources, the one that had a work least recently first."""
        self._making: dict[tuple[str, int], tuple[int, int]] = {}
        self._missing: dict[str, list[tuple[int, int]]] = {}
        """Ranges that were given out and did not come back."""
        self._reached: dict[str, int] = {}
        """Up to where tuples have been given out."""
        self._taken_s: dict[str, float] = {}
        self.stopped = False
        """True: this run makes no more tuples. The next run with this base goes on where it stopped."""

    def stop(self) -> None:
        """Make no more tuples in this run; those that are being made are finished."""
        self.stopped = True

    def begin(self, origin_s: float) -> dict[str, dict[str, Any]]:
        """The states of replays that begin now, so that starting up is no lateness."""
        new: dict[str, dict[str, Any]] = {
            name: {"origin_s": origin_s, "next": 0, "open": []}
            for name in self._arrivals
            if name not in self._state.sources
        }
        for name in self._arrivals:
            known = new.get(name) or self._state.sources[name]
            self._reached[name] = known["next"]
            self._missing[name] = [(first, stop) for first, stop in known["open"]]
        return new

    def totals(self) -> dict[str, int]:
        """How many tuples each replay has."""
        return {name: arrivals.total for name, arrivals in self._arrivals.items()}

    def free(self) -> list[tuple[str, int]]:
        """The parts of sources that have no work under way and may have one, the one that waits longest first."""
        if self.stopped:
            return []
        left = {
            name
            for name, arrivals in self._arrivals.items()
            if name in self._reached and (self._reached[name] < arrivals.total or self._missing[name])
        }
        return [(name, part) for name, part in self._turns if name in left and (name, part) not in self._making]

    def is_due(self, name: str, wall_s: float, now: float, pace_s: float) -> bool:
        """True when a source has tuples to make and had no work for a pace."""
        if self._missing[name]:
            return True
        if now < self._taken_s.get(name, -math.inf) + pace_s / self._parts[name]:
            return False
        return self._arrivals[name].due_by(wall_s - self._origin_s(name)) > self._reached[name]

    def take(
        self, name: str, part: int, most: int, wall_s: float, now: float, pace_s: float
    ) -> tuple[int, int, float, Arrivals] | None:
        """The next tuples of a source that are due: first, stop, origin, and the steps in which they are."""
        arrivals, origin_s = self._arrivals[name], self._origin_s(name)
        if most < 1 or not self.is_due(name, wall_s, now, pace_s):
            return None
        if self._missing[name]:
            first, stop = self._missing[name].pop()
            if stop - first > most:
                self._missing[name].append((first + most, stop))
                stop = first + most
        else:
            first = self._reached[name]
            due = arrivals.due_by(wall_s - origin_s)
            idle = sum((name, other) not in self._making for other in range(self._parts[name]))
            stop = min(due, first + most, first + max(1, math.ceil((due - first) / idle)))
            self._reached[name] = stop
            self._taken_s[name] = now
        self._making[name, part] = first, stop
        del self._turns[name, part]
        self._turns[name, part] = None
        return first, stop, origin_s, arrivals.part(first, stop)

    def done(self, work: SourceWork) -> None:
        self._making.pop((work.source, work.part), None)

    def lost(self, work: SourceWork) -> None:
        """Its host is gone: the same tuples are made again."""
        found = self._making.pop((work.source, work.part), None)
        if found is not None:
            self._missing[work.source].append(found)

    def states_after(self, finished: list[SourceWork]) -> dict[str, dict[str, Any]]:
        """Of the sources of which these works are done, as the ledger shall have them."""
        states: dict[str, dict[str, Any]] = {}
        for name in dict.fromkeys(work.source for work in finished):
            done = {(work.part, work.first) for work in finished if work.source == name}
            making = [
                span for (other, part), span in self._making.items() if other == name and (part, span[0]) not in done
            ]
            opened = sorted([*making, *self._missing[name]])
            reached = self._reached[name]
            # What is being made at the very end is not missing, it is simply not read yet.
            while opened and opened[-1][1] == reached:
                reached = opened.pop()[0]
            states[name] = {**self._state.sources[name], "next": reached, "open": [list(span) for span in opened]}
        return states

    def exhausted(self) -> bool:
        """True when every tuple of every replay has been made and committed."""
        for name, arrivals in self._arrivals.items():
            known = self._state.sources.get(name)
            if known is None or known["next"] < arrivals.total or known["open"]:
                return False
        return True

    def next_due_s(self, wall_s: float, now: float, pace_s: float) -> float:
        """In how many seconds a free source has something to make."""
        soonest = math.inf
        for name in dict.fromkeys(name for name, _ in self.free()):
            if self._missing[name]:
                return 0.0
            first = self._reached[name]
            due = self._origin_s(name) + float(self._arrivals[name].due_times(first, first + 1)[0]) - wall_s
            paced = self._taken_s.get(name, -math.inf) + pace_s / self._parts[name] - now
            soonest = min(soonest, max(due, paced, 0.0))
        return soonest

    def unread(self, wall_s: float) -> dict[str, int]:
        """Tuples that are due and not read yet."""
        left = {}
        for name, arrivals in self._arrivals.items():
            known = self._state.sources.get(name)
            if known is not None:
                missing = sum(stop - first for first, stop in known["open"])
                left[name] = max(0, arrivals.due_by(wall_s - known["origin_s"]) - known["next"]) + missing
        return left

    def has_unread(self, name: str, part: str | None, wall_s: float) -> bool:
        """True when tuples are due that are not made and committed. A replay has one order and no parts."""
        known = self._state.sources.get(name)
        if known is None:
            return False
        return bool(known["open"]) or self._arrivals[name].due_by(wall_s - known["origin_s"]) > known["next"]

    def _origin_s(self, name: str) -> float:
        return float(self._state.sources[name]["origin_s"])
