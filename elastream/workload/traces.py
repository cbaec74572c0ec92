"""Traces by name: those that ship with the package, or a file."""

from importlib.resources import files
from pathlib import Path

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals, from_csv


def trace_names() -> list[str]:
    """The traces that ship with the package."""
    return sorted(
        path.name.removesuffix(".csv")
        for path in files(__package__).joinpath("traces").iterdir()
        if path.name.endswith(".csv")
    )


def load_trace(name: str, *, speed: float = 1.0, scale: float = 1.0) -> Arrivals:
    """A trace by its name, or a CSV file by its path."""
    if name in trace_names():
        return from_csv(Path(str(files(__package__).joinpath("traces", f"{name}.csv"))), speed=speed, scale=scale)
    if not Path(name).is_file():
        raise SettingError(f"trace {name!r}: neither a file nor one of {', '.join(trace_names())}")
    return from_csv(name, speed=speed, scale=scale)
