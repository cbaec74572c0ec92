"""A base that begins anew: the files that runs have left in it are deleted, and nothing else that is there."""

import logging

from elastream.control.journal import FOLDER as JOURNAL
from elastream.engine.operations.log_file import FOLDER as LOGS
from elastream.engine.operations.requests import FOLDER as REQUESTS
from elastream.engine.operations.status_document import FILE as STATUS
from elastream.engine.worker.base_id import FILE
from elastream.errors import Damaged, SettingError
from elastream.lanes.lease import BaseLease
from elastream.lanes.ledger import Ledger
from elastream.lanes.ledger_files import FOLDER as LEDGER
from elastream.lanes.readers import FOLDER as READERS
from elastream.lanes.segments import FOLDER as SEGMENTS
from elastream.lanes.store import Store
from elastream.policies.model_library import FOLDER as MODELS

log = logging.getLogger("elastream.run")

FOLDERS = (LEDGER, SEGMENTS, JOURNAL, READERS, MODELS, REQUESTS, LOGS, "checkpoint")
FILES = ("rescale.json", STATUS, FILE)
"""The last of them says that a folder is a base: it goes last, so that a deletion that was cut off can be repeated."""


def check_fresh(store: Store) -> None:
    """Raise when there is something that is no base of ours. Nothing is changed."""
    if not _is_base(store) and store.holds_anything():
        raise SettingError(
            f"fresh: {store} is not empty and no base of Elastream, so nothing of it is deleted; name another base"
        )


def begin_anew(store: Store) -> None:
    """Delete what runs have left in a base, when no driver has it; says so in one line."""
    check_fresh(store)
    if not _is_base(store):
        return
    lease = BaseLease(store)
    lease.acquire()
    try:
        try:
            state = Ledger(store).load()
            held = f"{state.entry + 1:,} entries and {sum(map(len, state.lanes.values())):,} tuples that waited"
        except Damaged:
            held = "a damaged ledger"
        for folder in FOLDERS:
            store.remove_folder(folder)
        store.delete(FILES)
    finally:
        lease.release()
    log.warning("base %s begins anew: %s were deleted", store, held)


def _is_base(store: Store) -> bool:
    return bool(store.exists(FILE) or store.names(LEDGER))
