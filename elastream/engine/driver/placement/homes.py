"""Homes of lanes: the host in which each lane is served. A lane keeps its home while both live and the home has room."""

from collections import Counter
from collections.abc import Iterable

from elastream import rules
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.hosts import HostPhase, HostRecord, HostTable
from elastream.lanes.segments import LaneId


class LaneHomes:
    """Lanes of stateful operators move only with their state; others move to where there is room. In the driver's thread only."""

    def __init__(self, hosts: HostTable, groups: GroupTable) -> None:
        self._hosts = hosts
        self._groups = groups
        self._homes: dict[LaneId, int] = {}
        self._lanes: Counter[int] = Counter()
        """Lanes per host."""
        self._shares: Counter[tuple[str, int]] = Counter()
        """Lanes per operator and host."""
        self._executors: Counter[tuple[str, str]] = Counter()
        """Lanes per operator and executor."""
        self._executor_of: dict[int, str] = {}
        """Of every host that has lanes, also if it is gone by now."""
        self.pins: dict[LaneId, int] = {}
        """Lanes that a policy has placed: they stay there as long as the host lives."""

    def is_stateful(self, lane: LaneId) -> bool:
        return lane.operator in self._groups.stateful

    def release_isolated(self) -> None:
        """A work that must be alone cannot be sent now: idle hosts that are kept free for it take others."""
        self._hosts.release_isolated(idle_only=True)

    # -- where lanes are

    def home(self, lane: LaneId) -> int | None:
        return self._homes.get(lane)

    def lanes_in(self, host: int) -> list[LaneId]:
        return [lane for lane, home in self._homes.items() if home == host]

    def settled(self, lane: LaneId) -> HostRecord | None:
        """The home of a stateful lane, which moves only if it must; None while there is no host."""
        home = self._hosts.get(self._homes.get(lane))
        if home is None and len(self._hosts):
            known = self.pins[lane] if lane in self.pins else self._with_most_copies(lane)
            staying = {record.host: record for record in self._hosts.staying()}
            home = staying[known] if known in staying else self._best(lane.operator, also_isolated=True)
            if home is not None:
                self._set(lane, home)
        return home

    def emptiest(self, operator: str) -> HostRecord | None:
        """The host for one more lane of an operator; None while none stays."""
        staying = [record for record in self._hosts if not record.leaving]
        return min(staying, key=lambda record: self._crowd(operator, record), default=None)

    # -- hosts join, leave and are lost

    def host_lost(self, host: int) -> None:
        for lane in self.lanes_in(host):
            self._unset(lane)
        self._unpin(host)

    def host_leaves(self, host: int) -> None:
        """A host is to be given back. Stateless lanes find another home; stateful ones are moved with their state."""
        record = self._hosts.get(host)
        if record is None or record.leaving:
            return
        record.enter(HostPhase.LEAVING)
        self._unpin(host)
        for lane in self.lanes_in(host):
            if lane.operator not in self._groups.stateful:
                self._unset(lane)

    def spread(self, lanes: Iterable[LaneId]) -> None:
        """Hosts have joined or are lost: give every lane a home, and move as few others as an even share needs."""
        by_operator: dict[str, list[LaneId]] = {}
        for lane in sorted(lanes) if len(self._hosts) else ():
            if lane.operator in self._groups.stateful:
                self.settled(lane)
                continue
            by_operator.setdefault(lane.operator, []).append(lane)
        for operator, members in by_operator.items():
            for lane in members:
                if lane not in self._homes:
                    self._set(lane, min(self._hosts.staying(), key=lambda record: self._crowd(operator, record)))
            self._even_out(operator, [lane for lane in members if lane not in self.pins])

    # -- moving

    def pin(self, lane: LaneId, host: int) -> None:
        """Have a lane live in a host. A stateful one follows once its state is there."""
        record = self._hosts.get(host)
        if record is not None and not record.leaving:
            self.pins[lane] = host
            if lane.operator not in self._groups.stateful or lane not in self._homes:
                self._set(lane, record)

    def move(self, lane: LaneId, host: int) -> None:
        record = self._hosts.get(host)
        if record is not None:
            self._set(lane, record)

    # -- choosing a host for a work

    def host_for(self, lane: LaneId, computes: bool) -> HostRecord | None:
        """The host that shall serve a stateless lane now; None while all that could are busy."""
        home = self._hosts.get(self._homes.get(lane))
        if home is None or home.isolated or home.leaving:
            home = self._best(lane.operator)
            if home is None:
                return None
        if not computes:
            if not home.has_thread and lane not in self.pins:
                home = min(self._hosts.staying(), key=lambda record: len(record.works))
            return self._set(lane, home) if home.has_thread and not home.isolated else None
        if home.computing and lane not in self.pins:
            home = self._idle() or home
        return self._set(lane, home) if home.computing < rules.DEPTH else None

    def host_for_source(self, part: LaneId, most: int) -> HostRecord | None:
        """The same for a part of a source; no host has more than `most` works of sources."""
        home = self._hosts.get(self._homes.get(part))
        if home is not None and home.reading >= most:
            idle = self._idle()
            return None if idle is None else self._set(part, idle)
        record = self.host_for(part, computes=True)
        return record if record is None or record.reading < most else None

    def stateful_host_for(self, lane: LaneId, computes: bool) -> HostRecord | None:
        """The home of a stateful lane, if it can serve it now."""
        home = self.settled(lane)
        if home is None or home.isolated:
            return None
        room = home.computing < rules.DEPTH if computes else home.has_thread
        return home if room else None

    def isolated_host(self) -> HostRecord | None:
        """A host without works that gets nothing else, for a work that must be alone; None until one is empty."""
        chosen = next((record for record in self._hosts if record.isolated), None)
        if chosen is None:
            chosen = min(self._hosts.staying(), key=lambda record: (len(record.works), record.host), default=None)
            if chosen is None:
                return None
            chosen.isolated = True
        return None if chosen.works else chosen

    def isolated_home(self, lane: LaneId) -> HostRecord | None:
        """The same for a stateful lane, in its home."""
        home = self.settled(lane)
        if home is None:
            return None
        home.isolated = True
        return None if home.works else home

    # -- inside

    def _with_most_copies(self, lane: LaneId) -> int | None:
        """The host that knows most of the state that a lane needs; None if none knows any."""
        copies = self._groups.copies_of(lane)
        staying = [record.identity for record in self._hosts.staying() if record.identity in copies]
        best = max(staying, key=lambda host: (copies[host], -host.number), default=None)
        return None if best is None else best.number

    def _idle(self) -> HostRecord | None:
        return next((record for record in self._hosts.staying() if not record.computing and not record.isolated), None)

    def _best(self, operator: str, *, also_isolated: bool = False) -> HostRecord | None:
        """The home for one more lane of an operator; None while all hosts are isolated, unless one of those will do.

        It must do for a stateful lane: the host may be isolated for this very lane, which needs a home first.
        """
        free = [record for record in self._hosts.staying() if not record.isolated]
        free = free or (self._hosts.staying() if also_isolated else [])
        return min(free, key=lambda record: self._crowd(operator, record), default=None)

    def _even_out(self, operator: str, lanes: list[LaneId]) -> None:
        while True:
            staying = self._hosts.staying()
            emptiest = min(staying, key=lambda record: self._crowd(operator, record))
            fullest = max(staying, key=lambda record: self._crowd(operator, record))
            if self._shares[operator, fullest.host] - self._shares[operator, emptiest.host] <= 1:
                return
            # The first lanes are the active ones.
            lane = next((lane for lane in lanes if self._homes[lane] == fullest.host), None)
            if lane is None:
                return
            self._set(lane, emptiest)

    def _crowd(self, operator: str, record: HostRecord) -> tuple[int, int, int, int]:
        """Lanes of an operator in a host, then those in its executor, then all lanes of the host."""
        shares, beside = self._shares[operator, record.host], self._executors[operator, record.executor]
        return shares, beside, self._lanes[record.host], record.host

    def _unpin(self, host: int) -> None:
        self.pins = {lane: pin for lane, pin in self.pins.items() if pin != host}

    def _set(self, lane: LaneId, record: HostRecord) -> HostRecord:
        if self._homes.get(lane) != record.host:
            self._unset(lane)
            self._homes[lane] = record.host
            self._executor_of[record.host] = record.executor
            self._count(lane, record.host, 1)
        return record

    def _unset(self, lane: LaneId) -> None:
        home = self._homes.pop(lane, None)
        if home is not None:
            self._count(lane, home, -1)

    def _count(self, lane: LaneId, host: int, change: int) -> None:
        self._lanes[host] += change
        self._shares[lane.operator, host] += change
        self._executors[lane.operator, self._executor_of[host]] += change
