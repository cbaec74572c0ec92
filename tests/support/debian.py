"""Debian packages that tests install when a real part is missing: a browser, a database, a server."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 600


def found_or_installed(find: Callable[[], T | None], *packages: str) -> T | None:
    """What `find` finds, after an installation where that is allowed and needed. Tests side by side install one after another."""
    found = find()
    if found is not None or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return found
    with (Path(tempfile.gettempdir()) / "elastream-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find()
        if found is None:
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
            for command in (["apt-get", "update", "-q"], install):
                subprocess.run(command, capture_output=True, check=False, env=environment, timeout=PATIENCE_S)
            found = find()
    return found
