"""The commit itself: an entry is completed and written, then Spark may begin, and segments that nothing needs are deleted."""

from elastream.engine.driver.commit.committer import Committed
from elastream.engine.driver.commit.entries import EntryBuilder
from elastream.engine.driver.dispatch.works import Dispatch, Moment
from elastream.engine.driver.placement.group_mover import NewOwners
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.engine.driver.ports import Edges
from elastream.engine.driver.run_base import RunBase
from elastream.lanes.entries import Entry


class EntryWriter:
    """In the driver's thread only."""

    def __init__(self, entries: EntryBuilder, base: RunBase, keeper: StateKeeper, edges: Edges | None) -> None:
        self._entries = entries
        self._base = base
        self._keeper = keeper
        self._edges = edges

    def give_to_spark(self, dispatch: Dispatch, moment: Moment) -> None:
        """Add the tuples that Spark is given next; it gets them when they are written."""
        if self._edges is not None:
            self._edges.plan(dispatch, moment.now, moment.wall_s)

    def write(
        self,
        committed: Committed,
        owners: NewOwners,
        watermarks: dict[str, float],
        dispatch: Dispatch,
        moment: Moment,
    ) -> Entry | None:
        """Write what was done and what is planned as one entry; None if there is nothing to write."""
        entry = self._entries.planned(committed.entry, owners, watermarks, dispatch, moment.wall_s)
        if entry is not None:
            self._base.state.reach(entry)
            self._base.write(entry)
        if self._edges is not None:
            self._edges.begin()
        if entry is not None or committed.ended:
            self._clean_up(committed)
        if self._edges is not None:
            for batch in committed.batches:
                self._edges.committed(batch, moment.now)
        return entry

    def _clean_up(self, committed: Committed) -> None:
        state = self._base.state
        spare = self._edges.spare_from() if self._edges else state.entry + 1
        in_use = self._keeper.segments_in_use
        self._base.cleanup.after_commit(state, committed.unused, committed.ended, spare, in_use)
