"""Statuses, made from the tables of a driver."""

import msgspec

from elastream.engine.clock import Clock
from elastream.engine.driver.build import Driver
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.status import NO_HOST, HostStatus, LaneStatus, RunStatus, WorkStatus


class StatusMaker:
    """Makes the status from the driver's own tables. In the driver's thread only."""

    def __init__(self, driver: Driver, life: RunLife, clock: Clock) -> None:
        self._driver = driver
        self._state = driver.tables.state
        self._life = life
        self._clock = clock

    def is_stale(self, status: RunStatus) -> bool:
        """True if something has changed that others should see at once."""
        return status.batch != self._state.batch or status.replicas != self._state.sizes

    def make(self) -> RunStatus:
        state, driver, tables, wall_s = self._state, self._driver, self._driver.tables, self._clock.wall_s()
        home = tables.homes.home
        return RunStatus(
            entry=state.entry,
            entry_at_s=state.at_s,
            at_s=wall_s,
            phase=self._life.phase,
            stage=self._life.stage,
            replicas=dict(state.sizes),
            totals={name: msgspec.structs.replace(counts) for name, counts in state.totals.items()},
            queued={name: state.queued(name) for name in state.sizes},
            lanes={lane: LaneStatus(len(queue), _number(home(lane))) for lane, queue in state.lanes.items()},
            outputs=tuple(state.outputs),
            service_s=dict(tables.estimates.service_s),
            waits=tables.estimates.waits(),
            unread=tables.replays.unread(wall_s),
            sources={name: dict(position) for name, position in state.sources.items()},
            watermarks=dict(state.watermarks),
            batch=state.batch,
            hosts=tuple(
                HostStatus(
                    record.host,
                    record.incarnation,
                    record.pid,
                    record.machine,
                    record.executor,
                    record.leaving,
                    len(record.works),
                    record.usage,
                )
                for record in tables.hosts
            ),
            works=tuple(
                WorkStatus(
                    work.operator,
                    tuple(lane.lane for lane in work.lanes),
                    sum(work.lanes.values()),
                    work.sent_s,
                    work.host,
                )
                for work in tables.works.all()
                if work.lanes
            ),
            fleet=driver.fleet.look(),
            state_moves=tuple(driver.mover.receipts),
            redirections=tuple(driver.redirector.records),
            failures=tuple(driver.failures.words),
            timed=dict(driver.learner.timed),
            ticks=driver.pace.ticks,
            works_sent=driver.pace.works,
            tick_cpu_s=driver.pace.cpu_s,
        )


def _number(host: int | None) -> int:
    return NO_HOST if host is None else host
