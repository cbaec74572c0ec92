"""A directory for the sockets between Spark and its Python workers that only this user can enter.

Whoever connects to such a socket is given a Python process of ours, and Spark leaves it to the umask who may.
"""

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

FOLDER = "/tmp"
"""Not the temporary directory of the user's choice: a socket's path has at most 108 characters."""

PREFIX = "elastream-sockets-"


@lru_cache(maxsize=1)
def socket_folder() -> str:
    """One for this process; it goes with the process. Those of processes that were killed are removed here."""
    for left in Path(FOLDER).glob(f"{PREFIX}*"):
        with suppress(OSError, ValueError):
            pid = int(left.name.removeprefix(PREFIX).partition("-")[0])
            if left.stat().st_uid == os.getuid() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(left, ignore_errors=True)
    made = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=FOLDER)
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return made
