"""The base directory of a run: holds its lease, writes entries, deletes segments nobody needs."""

from collections.abc import Iterator
from contextlib import contextmanager

from elastream.engine.clock import Clock
from elastream.errors import BaseUnusable
from elastream.lanes.cleanup import SegmentCleanup
from elastream.lanes.entries import Entry
from elastream.lanes.lease import BaseLease, Machine
from elastream.lanes.ledger import Ledger
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store


class RunBase:
    """Of one run. `state` is what the ledger says; the tick applies an entry to it and then writes that entry here."""

    def __init__(self, store: Store, clock: Clock, machine: Machine | None = None, owner: str | None = None) -> None:
        """`machine` and `owner` are those of the lease; by default this machine, and an identity of its own."""
        self.store = store
        self.state = LedgerState()
        self.cleanup = SegmentCleanup(store, clock.now)
        self._lease = BaseLease(store, clock.now, clock.sleep, machine, owner)
        self._ledger = Ledger(store)

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Take the base and read the ledger; the block checks it. The base is let go when the block fails.

        A base that is refused is left as it was: the new epoch begins after the block.
        """
        self._lease.acquire()
        try:
            self.store.remove_unfinished("ledger")
            self.store.remove_unfinished("segments")
            self.state = self._ledger.load()
            yield
            self._ledger.begin(self.state)
            self.cleanup.sweep(self.state, self.state.entry + 1)
        except OSError as error:
            self.close()
            raise BaseUnusable(f"base {self.store}: cannot be read and written: {error}") from error
        except BaseException:
            self.close()
            raise

    def commit(self, entry: Entry) -> None:
        """Apply an entry and write it: outside of ticks."""
        self.state.apply(entry)
        self.write(entry)

    def write(self, entry: Entry) -> None:
        """The commit. The entry has been applied to the state already: when this raises, the run is over."""
        try:
            self._ledger.commit(entry)
        except OSError as error:
            raise BaseUnusable(
                f"base {self.store}: entry {entry.number} could not be written: {error}; nothing of it was applied: "
                "make room or mend the permissions, then start again with the same base"
            ) from error
        self._after_commit()

    def _after_commit(self) -> None:
        """After a commit: make sure that the base is still ours, and begin a new log when the last has become long."""
        try:
            self._lease.confirm()
            self._ledger.tidy(self.state)
        except OSError as error:
            raise BaseUnusable(
                f"base {self.store}: a new log could not be begun: {error}; all up to entry {self.state.entry} is committed: make room "
                "or mend the permissions, then start again with the same base"
            ) from error

    def keep(self) -> None:
        """Called in every turn: the lease is kept also while nothing is written."""
        try:
            self._lease.keep()
        except OSError as error:
            raise BaseUnusable(f"base {self.store}: its lease could not be kept: {error}") from error

    def close(self) -> None:
        self._ledger.close()
        self._lease.release()
