"""Hosts in virtual time whose works are late, are done in any order, and get lost with the host: one seed is one history."""

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from elastream.engine.clock import VirtualClock
from elastream.engine.hosts.inline_hosts import InlineHosts
from elastream.engine.hosts.link import Event, HostSaid, HostWent
from elastream.engine.messages import Receipt, ToHost, Work, Works


class Late(NamedTuple):
    """How late works are, and how often hosts die or pause; each is a chance per poll."""

    done: float = 0.5
    """That a work which a host has is done."""
    heard: float = 0.7
    """That the oldest receipt of a host arrives."""
    death: float = 0.003
    pause: float = 0.003
    returns: float = 0.5
    """That a host that died is there again in the same poll; otherwise `away_s` later."""
    twice: float = 0.0
    """That a receipt arrives twice."""
    pause_s: float = 0.2
    away_s: float = 0.1
    step_s: float = 0.004
    """Virtual time that passes in a poll in which nothing arrives."""


PROMPT = Late(done=1.0, heard=1.0, death=0.0, pause=0.0, returns=1.0)
"""Nothing is left to chance."""


class LateHosts(InlineHosts):
    """A work is done at some time after it was sent; its receipt arrives at some time after that, or never."""

    def __init__(self, clock: VirtualClock, seed: int, late: Late | None = None, first: int = 0) -> None:
        """`first`: where incarnations begin; no two of a base are the same."""
        super().__init__(clock)
        self._came = first
        self.clock = clock
        self._chance = random.Random(seed)
        self._late = late or Late()
        self._wanted: set[int] = set()
        self._has: dict[int, list[Work]] = {}
        self._receipts: dict[int, deque[HostSaid]] = {}
        self._away: dict[int, float] = {}
        self._paused: dict[int, float] = {}
        self.deaths = 0
        self.on_poll: Callable[[random.Random], object] = lambda chance: None
        """Called in the tick's thread: what a user does meanwhile."""
        self.holds: Callable[[int, Work], bool] = lambda host, work: False
        """Works that a host does not do now."""
        self.ends_with: Callable[[int, Work], bool] = lambda host, work: False
        """Works with whose receipts a host dies."""

    def keep(self, host: int) -> None:
        self._wanted.add(host)
        if host not in self._away:
            super().keep(host)

    def end(self, host: int) -> None:
        self._wanted.discard(host)
        self._away.pop(host, None)
        self._forget(host)
        super().end(host)

    def replace(self, host: int) -> None:
        self._die(host)

    def send(self, host: int, message: ToHost) -> None:
        if isinstance(message, Works):
            if host in self._contexts:
                self._has.setdefault(host, []).extend(message.works)
        else:
            super().send(host, message)

    def poll(self, timeout_s: float) -> list[Event]:
        self.on_poll(self._chance)
        now, late = self._clock.now(), self._late
        for host in [host for host, until_s in self._away.items() if until_s <= now]:
            del self._away[host]
            self.keep(host)
        for host in sorted(self._contexts):
            if self._paused.get(host, 0.0) > now:
                continue
            self._work(host)
            if self._chance.random() < late.pause:
                self._paused[host] = now + late.pause_s
            if host in self._contexts and self._chance.random() < late.death:
                self._die(host)
        if not self._events:
            under_way = any(self._has.values()) or any(self._receipts.values())
            self._clock.sleep(min(timeout_s, late.step_s) if under_way else timeout_s)
        events, self._events = self._events, []
        return events

    def _work(self, host: int) -> None:
        context, works = self._contexts[host], self._has.get(host, [])
        free = [work for work in works if not self.holds(host, work)]
        for work in [work for work in free if self._chance.random() < self._late.done]:
            works.remove(work)
            receipt: Receipt = self._do(context, work)
            said = HostSaid(host, self._incarnations[host], [receipt], context.writer.ended())
            self._receipts.setdefault(host, deque()).append(said)
            if self.ends_with(host, work):
                self._die(host)
                return
        self._deliver(host)

    def _deliver(self, host: int) -> None:
        said = self._receipts.get(host, deque())
        while said and self._chance.random() < self._late.heard:
            self._events += [said.popleft()] * (2 if self._chance.random() < self._late.twice else 1)

    def _die(self, host: int) -> None:
        """Some of what it has said still arrives, together with its end."""
        if host not in self._contexts:
            return
        self.deaths += 1
        self._deliver(host)
        self._forget(host)
        self._contexts.pop(host).close()
        self._events.append(HostWent(host, self._incarnations[host]))
        if host in self._wanted:
            if self._chance.random() < self._late.returns:
                self.keep(host)
            else:
                self._away[host] = self._clock.now() + self._late.away_s

    def _forget(self, host: int) -> None:
        self._has.pop(host, None)
        self._receipts.pop(host, None)
        self._paused.pop(host, None)
