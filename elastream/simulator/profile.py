"""A profile: what `elastream calibrate` measured on a machine, and what a simulation takes its times from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from elastream.codec import convert, decode
from elastream.errors import SettingError

VERSION = 2


@dataclass(frozen=True)
class Machine:
    """Costs of the driver's turns and of works in hosts, beside the time that operators take."""

    cores: int
    turn_s: float
    """One turn of the driver: commit and plan."""
    receipt_s: float
    """Each receipt more in a turn."""
    work_s: float
    """Processor time of a host per work, besides its operator: read, route, write, the receipt."""
    tuple_s: float
    """The same per tuple."""
    hop_s: float
    """How long a message takes from the driver to a seat of a host, or back."""
    late_s: float = 0.0
    """How much longer than asked for an operator waits that waits: its thread must be woken and find a core."""
    thread_crowding: float = 0.0
    """How much more a thread computes to do the same, for each other that has a work in its host."""
    process_crowding: float = 0.0
    """How much slower computing gets for each host per core beyond the first, besides sharing the cores."""


@dataclass(frozen=True)
class OperatorTimes:
    """One operator of an application, without any service time that was added to it."""

    service_s: float
    cpu: float
    """The share of it that needs a core."""
    spread: float
    """Standard deviation of the service time of a tuple, in parts of its mean."""
    shares: dict[str, float] = field(default_factory=dict)
    """Tuples that go to each operator behind it, for each one processed."""
    call_s: float = 0.0
    """Seconds that it takes once per work, besides its tuples."""
    bend: float = 0.0
    """How much longer a service takes for each replica beyond the first, in parts of it: they share a lock, or a cache."""
    most_per_s: float = 0.0
    """Tuples per second that all replicas together can serve, where a service that they ask has a limit; 0: none."""


@dataclass(frozen=True)
class Profile:
    machine: Machine
    apps: dict[str, dict[str, OperatorTimes]]
    """By application and operator; sources are operators here too."""
    version: int = VERSION

    def times(self, app: str) -> Mapping[str, OperatorTimes]:
        if app not in self.apps:
            known = ", ".join(self.apps)
            raise SettingError(
                f"app {app!r}: the profile knows {known}; measure it with: elastream calibrate {app} --profile FILE"
            )
        return self.apps[app]


def load_profile(path: str | None) -> Profile:
    """From a file, or the one that ships."""
    if path is None:
        text = files(__package__).joinpath("default_profile.json").read_text(encoding="utf-8")
        return parse_profile(text, "the profile that ships")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"profile {path}: cannot be read: {error}; write one with elastream calibrate") from None
    return parse_profile(text, f"profile {path}")


def parse_profile(text: str, where: str) -> Profile:
    fix = "; write one with elastream calibrate"
    document = decode(text, dict[str, Any], f"{where}: not a profile", error=SettingError, fix=fix)
    if document.get("version") != VERSION:
        raise SettingError(f"{where}: of version {document.get('version')}, expected {VERSION}; calibrate again")
    profile = convert(document, Profile, f"{where}: not a profile", error=SettingError, fix=fix)
    try:
        _check(profile)
    except ValueError as error:
        raise SettingError(f"{where}: not a profile: {error}{fix}") from None
    return profile


def _check(profile: Profile) -> None:
    for name, value in vars(profile.machine).items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"machine: {name} must be 0 or more, got {value!r}")
    if profile.machine.cores < 1:
        raise ValueError(f"machine: cores must be 1 or more, got {profile.machine.cores}")
    for app, operators in profile.apps.items():
        for name, times in operators.items():
            numbers = (times.service_s, times.cpu, times.spread, times.call_s, *times.shares.values())
            if not all(0 <= number < float("inf") for number in numbers):
                raise ValueError(f"{app}, {name}: times and shares must be 0 or more, got {times}")
