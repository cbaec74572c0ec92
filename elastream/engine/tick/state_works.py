"""The works about states that the keeper asks for: they run beside the others, and need no seat."""

from elastream.engine.tick.roster import Roster
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.state_tasks import Task
from elastream.engine.tick.works import NextWorks, UnderWay, WorksUnderWay


def plan_state_works(keeper: StateKeeper, roster: Roster, works: WorksUnderWay, planned: NextWorks, now: float) -> None:
    """Send the tasks whose host is there and whose lane has no work under way."""
    for task in keeper.tasks() if keeper else ():
        stands = task.kind is Task.WHOLE and task.lane in keeper.stopped
        if task.lane in works.busy or stands:
            continue
        seats = roster.hosts[task.host.number]
        work = keeper.work(task, next(works.ids))
        lanes = {task.lane: 0} if task.lane is not None else {}
        sent = keeper.sent(task, work)
        works.add(UnderWay(work.id, seats.host, task.operator, lanes, now, False, False, task=sent), seats)
        planned.works.setdefault(seats.host, []).append(work)
