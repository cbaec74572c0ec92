"""Directories and files of a base on a local file system: only the user who runs Elastream can read them.

Rows, states and dead letters are in them. Hosts on other machines that share the file system run as the same user.
"""

import os
from pathlib import Path

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


def make_folder(path: "Path | str") -> None:
    """Make a directory of a base. Directories above it are not of the base, and have the permissions that are usual here."""
    Path(path).mkdir(_FOLDER_MODE, parents=True, exist_ok=True)


def open_file(path: "Path | str", flags: int) -> int:
    """Open or create a file of a base; gives its descriptor. A symbolic link is not followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, _FILE_MODE)


def write_file(path: "Path | str", data: "bytes | memoryview") -> None:
    """Write a whole file; what it held before is gone."""
    descriptor = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        left = memoryview(data).cast("B")
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
