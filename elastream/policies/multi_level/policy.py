"""The policy `multi-level`: a table of configurations, given or found, and the usual load ahead of it.

Reactive: the load leaves the thresholds of the present configuration, by its trend, or an instance is congested beyond the table; then
the configuration for the load is the goal. Proactive: the usual load says what comes within the time that containers take to start.
Containers are asked for first; replicas follow when those are there. What came last goes first.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from elastream.control import LevelWant, Observation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.fleet import Level, LevelState
from elastream.policies.multi_level.forecast import Foresight
from elastream.policies.multi_level.health import Congested, Sources, congested
from elastream.policies.multi_level.scale_out import scale_out
from elastream.policies.multi_level.table import Configuration, Row, load_table
from elastream.policies.multi_level.trend import Trend
from elastream.policies.multi_level.usual import load_usual

STUBBORN = 3
"""An instance that is congested in so many observations in a row, although the table says there is enough, is believed."""

LEADS = 2.0
"""The usual load is looked ahead by so many times the start-up time, as in the paper: a minute for a machine, two minutes ahead."""


class MultiLevel(Policy):
    """`table` and `usual` are files; without a table it finds one while it runs.

    They come from `elastream ramp` and `elastream usual`.
    """

    def __init__(
        self, table: str = "", usual: str = "", health: float = 0.9, overload: float = 0.9, looks: int = 3
    ) -> None:
        for name, value in (("health", health), ("overload", overload)):
            if not 0 <= value <= 1:
                raise SettingError(f"policy 'multi-level': {name} must be 0..1, got {value:g}")
        if looks < 1:
            raise SettingError(f"policy 'multi-level': looks must be 1 or more, got {looks}")
        self.name = "multi-level" + (" proactive" if usual else "")
        self.start = 1
        self._rows: list[Row] = list(load_table(table).rows) if table else []
        self._foresight = Foresight(load_usual(usual), looks) if usual else None
        self._health, self._overload = health, overload
        self._sources = Sources()
        self._trend = Trend(looks)
        self._place = -1
        """The row that is the goal; -1: none yet."""
        self._settled_s = -inf
        """Intervals that began before this moment are not judged: they saw the configuration before."""
        self._sick_looks = 0
        self._stuck = ""
        """Why nothing could be done about a congested instance at the last observation."""
        self._raised = 0
        """Rows above what the table says, because it proved to be too little."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(self._rows)

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        self._sources.note(observation)
        load = self._sources.total / observation.seconds
        self._trend.add(observation.ended_s, load)
        if not self._rows:
            self._rows.append(Row(inf, Configuration.planned(observation)))
        if self._place < 0:
            # What runs may be any configuration: the first goal is the one for the load.
            self._place = self._row_for(load)
        sick = self._judged(observation)
        self._stuck, before = "", self._stuck
        words = self._react(observation, load, sick)
        alerts = [self._stuck] if self._stuck and not before else []
        if self._foresight is not None:
            alert, words = self._foresee(observation, words)
            alerts += [alert] if alert else []
        proposal = self._toward(observation, words)
        if proposal.wants or proposal.levels:
            self._settled_s = observation.ended_s
        return replace(proposal, alerts=tuple(alerts))

    # -- which row is the goal

    def _judged(self, observation: Observation) -> Congested | None:
        """The congested instance, if the interval saw the configuration that is the goal, all of it."""
        if observation.ended_s - observation.seconds < self._settled_s - 1e-6:
            return None
        missing = [state for state in observation.fleet if state.there < state.planned]
        if any(not state.problem for state in missing):
            return None
        goal = self._rows[self._place].configuration.replicas
        if not missing and any(goal.get(o.operator, o.replicas) > o.replicas for o in observation.scalable()):
            # They follow now.
            return None
        return congested(observation, self._sources, self._health)

    def _row_for(self, load: float) -> int:
        return next((place for place, row in enumerate(self._rows) if load <= row.up_to), len(self._rows) - 1)

    def _react(self, observation: Observation, load: float, sick: Congested | None) -> str:
        """By the thresholds of the table and the trend; beyond the table by algorithm 2."""
        row, last = self._rows[self._place], len(self._rows) - 1
        lower = self._rows[self._place - 1].up_to if self._place else 0.0
        self._sick_looks = self._sick_looks + 1 if sick else 0
        now = self._trend.now
        if now > row.up_to and self._trend.slope >= 0.0 and self._place < last:
            self._place, self._raised = max(self._row_for(now), self._place + 1), 0
            return f"reactive: {now:,.0f}/s is above {row.up_to:,.0f}/s, the upper threshold of what there is"
        stubborn = self._sick_looks >= STUBBORN
        if sick and self._place == last and (row.up_to == inf or load > row.up_to or stubborn):
            return f"reactive: {self._extend(observation, load, sick)}"
        if sick and stubborn:
            self._place, self._raised, self._sick_looks = self._place + 1, self._raised + 1, 0
            return f"reactive: {sick} at {load:,.0f}/s, although the table says that {row.up_to:,.0f}/s is carried"
        calm = self._trend.is_known and self._trend.slope <= 0.0 and not sick
        floor = self._rows[self._place - 1 - self._raised].up_to if self._place > self._raised else lower
        if self._place and calm and self._trend.highest < min(lower, floor):
            self._place, self._raised = self._row_for(self._trend.highest), 0
            return f"reactive: {now:,.0f}/s is below {lower:,.0f}/s, the lower threshold of what there is"
        upper = "where nothing is known" if row.up_to == inf else f"{row.up_to:,.0f}/s"
        return f"reactive: {now:,.0f}/s is from {lower:,.0f}/s to {upper}"

    def _extend(self, observation: Observation, load: float, sick: Congested) -> str:
        """A row more than the table has, by the cheapest container that helps."""
        growth = scale_out(observation, sick, self._overload)
        if growth.configuration is None:
            self._stuck = f"nothing helps: {growth.reason}"
            return growth.reason
        lower = self._rows[self._place - 1].up_to if self._place else 0.0
        carried = max(lower * 1.001, min(load * min(1.0, sick.health), load * 0.999))
        self._rows[self._place] = replace(self._rows[self._place], up_to=carried)
        self._rows.append(Row(inf, growth.configuration))
        self._place += 1
        return growth.reason

    def _foresee(self, observation: Observation, words: str) -> tuple[str, str]:
        """The goal is the larger of what the load asks for and what is usual does; the words say which spoke."""
        assert self._foresight is not None
        slowest_s = max((state.start_s for state in observation.fleet), default=0.0)
        lead_s = LEADS * slowest_s + observation.seconds
        forecast = self._foresight.look(observation.ended_s, self._trend.now, lead_s)
        if forecast.per_s is None:
            return forecast.alert, f"{words}; {forecast.words}"
        place = self._row_for(forecast.per_s)
        # It shrinks ahead of the load, too, but not before the load itself allows it.
        needed = max(self._row_for(self._trend.highest), self._row_for(self._trend.now)) + self._raised
        if place > self._place or needed <= place < self._place:
            self._place, self._raised = place, 0
            return forecast.alert, f"proactive: {forecast.words}, a start takes {slowest_s:.2g} s at most"
        if needed < self._place == place:
            return forecast.alert, f"proactive: {forecast.words}"
        return forecast.alert, words

    # -- from here to there

    def _toward(self, observation: Observation, words: str) -> Proposal:
        goal = self._rows[self._place].configuration
        levels, waits = [], ""
        for level, count in goal.levels.items():
            state = observation.level(level)
            if state is None:
                continue
            if count != state.planned:
                levels.append(LevelWant(level, count, f"{words}; {_when(state, count)}"))
            if state.there < count:
                waits = state.problem or f"{level.count(count - state.there)} not there yet, {state.start_s:.2g} s each"
        replicas = goal.replicas if not waits else self._meanwhile(observation)
        said = f"{words}; {waits}" if waits else words
        wants = tuple(
            Want(operator.operator, replicas[operator.operator], said)
            for operator in observation.scalable()
            if operator.operator in replicas and replicas[operator.operator] != operator.replicas
        )
        return Proposal(wants, levels=tuple(levels))

    def _meanwhile(self, observation: Observation) -> dict[str, int]:
        """Replicas of the largest configuration whose containers are all there, and no fewer than there are."""
        there = {state.level: state.there for state in observation.fleet}
        now = {operator.operator: operator.replicas for operator in observation.scalable()}
        for row in reversed(self._rows[: self._place]):
            its = row.configuration
            if all(there.get(level, count) >= count for level, count in its.levels.items() if level is not Level.SEAT):
                return {name: max(count, its.replicas.get(name, count)) for name, count in now.items()}
        return now


def _when(state: LevelState, count: int) -> str:
    if count < state.planned:
        return "those that came last go first"
    return f"one {state.level.value} more is there in {state.start_s:.2g} s"
