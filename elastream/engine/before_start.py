"""Checks before anything is started: what is wrong with a run is said in a line, and not after Spark has come up."""

import os
from pathlib import Path

from elastream.control import interval_of
from elastream.engine.assemble import Plan
from elastream.engine.driver.opening import first_entry
from elastream.engine.fresh import check_fresh
from elastream.engine.worker.program import check_travels
from elastream.errors import SettingError
from elastream.lanes.lease import refuse_if_locked
from elastream.lanes.ledger import Ledger
from elastream.lanes.store import Store
from elastream.topology import Graph
from elastream.topology.check import check_engine_groupings


def check_before_start(graph: Graph, store: Store, plan: Plan, *, fresh: bool = False) -> None:
    """The policy, the functions, the directories and what waits in the base, unless it shall begin anew."""
    check_engine_groupings(graph)
    policy = plan.chosen_policy(graph)
    interval_of(policy, plan.td_s)
    if plan.models is not None and "://" not in plan.models:
        check_folder("models", plan.models)
    if store.is_local:
        check_folder("base", store.uri)
        refuse_if_locked(store)
    if fresh:
        check_fresh(store)
    elif store.is_local:
        # Elsewhere reading it twice would take long.
        first_entry(graph, Ledger(store).load(), plan.discard, str(store), policy.start if policy else None, 0.0)
    check_travels(graph)


def check_folder(what: str, folder: str) -> None:
    """Raise when a directory is not there and cannot be made, or cannot be written."""
    path = Path(folder).absolute()
    there = next(parent for parent in (path, *path.parents) if parent.exists())
    if not there.is_dir():
        raise SettingError(f"{what} {folder}: {there} is a file, expected a directory; choose another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise SettingError(f"{what} {folder}: {there} cannot be written; choose another, or mend its permissions")
