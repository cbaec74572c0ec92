"""Traces by name: those that ship with the package, or a file, which is looked for in several directories."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals
from elastream.workload.trace_file import from_csv

TRACES = "ELASTREAM_TRACES"
"""The environment variable that names a directory with traces."""


@dataclass(frozen=True)
class Provenance:
    """What a shipped trace is and where it is from, as the table beside the traces says."""

    what: str
    source: str


def trace_names() -> list[str]:
    """The traces that ship with the package."""
    return sorted(path.name.removesuffix(".csv") for path in _folder().iterdir() if path.name.endswith(".csv"))


def load_trace(name: str, *, speed: float = 1.0, scale: float = 1.0) -> Arrivals:
    """A trace by its name, or a CSV file by its path."""
    if name in trace_names():
        return from_csv(Path(str(_folder().joinpath(f"{name}.csv"))), speed=speed, scale=scale)
    found = find_trace(name)
    if found is None:
        raise SettingError(f"trace {name!r}: neither a file nor one of {', '.join(trace_names())}; {where_looked()}")
    return from_csv(found, speed=speed, scale=scale)


def find_trace(name: str, folders: Sequence[str] = ()) -> Path | None:
    """The file of this name, with or without `.csv`, in these directories, then in those that are always looked in."""
    paths = [Path(folder) / f"{name}{end}" for folder in _folders(folders) for end in ("", ".csv")]
    return next((path for path in paths if path.is_file()), None)


def where_looked(folders: Sequence[str] = ()) -> str:
    """The directories of `find_trace`, for a message, and how to name another one."""
    known = ", ".join(os.path.normpath(Path(folder).absolute()) for folder in _folders(folders))
    return f"looked in {known}; name its directory with ${TRACES}, or elastream bench --traces"


def _folders(folders: Sequence[str]) -> list[str]:
    return [folder for folder in (*folders, ".", os.environ.get(TRACES, "")) if folder]


def provenance(name: str) -> Provenance:
    """Of a trace that ships with the package."""
    for line in _folder().joinpath("README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] == f"{name}.csv":
            return Provenance(cells[2], cells[3])
    raise SettingError(f"trace {name!r}: no row in the table of shipped traces, which are {', '.join(trace_names())}")


def _folder() -> Traversable:
    return files(__package__).joinpath("traces")
