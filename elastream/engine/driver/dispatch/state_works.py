"""Works about states that are asked for: they run beside the others, and need no thread."""

from elastream.engine.driver.dispatch.works import Dispatch, Moment, UnderWay, WorkTable
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.hosts import HostTable
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.engine.driver.placement.state_tasks import Task


class StateWorks:
    """In the driver's thread only."""

    def __init__(self, hosts: HostTable, groups: GroupTable, keeper: StateKeeper, works: WorkTable) -> None:
        self._hosts = hosts
        self._groups = groups
        self._keeper = keeper
        self._works = works

    def add(self, dispatch: Dispatch, moment: Moment) -> None:
        """Send the tasks whose host is there and whose lane has no work under way."""
        for task in self._keeper.tasks() if self._keeper else ():
            if task.lane is not None and self._works.is_busy(task.lane):
                continue
            if task.kind is Task.WHOLE and task.lane is not None and self._groups.is_frozen(task.lane):
                continue
            record = self._hosts[task.host.number]
            work = self._keeper.work(task, self._works.next_id())
            lanes = {task.lane: 0} if task.lane is not None else {}
            sent = self._keeper.sent(task, work)
            under_way = UnderWay(work.id, record.host, task.operator, lanes, moment.now, False, False, task=sent)
            self._works.add(under_way, record)
            dispatch.add(record.host, work)
