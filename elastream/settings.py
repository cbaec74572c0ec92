"""Settings of a run, in groups. Every field has a default that a newcomer can leave alone."""

from dataclasses import dataclass, field
from typing import Literal

from elastream.errors import SettingError
from elastream.field_docs import explained
from elastream.setting_fields import Option, SettingsGroup, check_environment, options_of, setting

LEAST_STATE_BYTES = 1 << 20
"""An empty store takes some pages already."""


@explained
@dataclass(frozen=True)
class QueueSettings(SettingsGroup):
    """Limits of the tuples that wait in lanes: `Settings(queues=QueueSettings(q_size=1000))`."""

    group = "queues"

    q_size: int | None = setting(None, least=1, none="no limit", flag="--q-size", metavar="TUPLES")
    """The most tuples that may wait in one lane; None: no limit."""

    on_full: Literal["wait", "drop"] = setting("wait", flag="--on-full")
    """A full lane makes its senders wait, or loses tuples that do not fit (counted)."""

    t_out_s: float | None = setting(None, above=0, none="no limit", flag="--t-out", metavar="S")
    """A tuple older than this is dropped (counted) before it is served; None: none is."""


@explained
@dataclass(frozen=True)
class ErrorSettings(SettingsGroup):
    """Tuples on which operators fail: `Settings(errors=ErrorSettings(on_error="stop"))`."""

    group = "errors"

    on_error: Literal["dead_letter", "stop"] = setting("dead_letter", flag="--on-error")
    """A tuple on which an operator raises, or ends its process, is put aside with its error (counted), or ends the run."""

    stop_after_failures: int | None = setting(100, least=1, none="that no run stops for it")
    """An operator that fails on all of its first tuples, as many as this, ends the run; None: it does not."""

    most_letters: int | None = setting(100_000, least=0, none="no limit")
    """Dead letters that a base keeps; of more, the oldest are removed unread (counted). None: no limit."""

    letters_days: float | None = setting(30.0, above=0, none="no limit")
    """Dead letters older than this are removed unread (counted); None: they stay."""


@explained
@dataclass(frozen=True)
class StateSettings(SettingsGroup):
    """State of keyed operators and of DataFrame operators: `Settings(state=StateSettings(ring_s=None))`."""

    group = "state"

    ring_s: float | None = setting(1.0, above=0, none="no copies")
    """How often keyed state is copied to the next replica's host, which takes over when a host dies; None: never."""

    bytes_per_host: int | None = setting(None, least=LEAST_STATE_BYTES, none="no limit but the disk")
    """How much of each host's disk keyed state may fill, copies for the ring included; None: as much as there is."""

    partitions: int = setting(4, least=1)
    """Into how many parts Spark cuts the state of dataframe operators, when a base is new; later `handle.rescale_state` does."""


@explained
@dataclass(frozen=True)
class WorkSettings(SettingsGroup):
    """Works, the portions of tuples that hosts serve at a time: `Settings(works=WorkSettings(timeout_s=60))`."""

    group = "works"

    budget_s: float = setting(0.05, above=0)
    """How long a work may take. Shorter: less latency. Longer: less overhead."""

    max_budget_s: float = setting(1.0, above=0)
    """How far the budget may grow when the driver or the storage is slow."""

    timeout_s: float | None = setting(None, above=0, none="no limit")
    """A work that takes longer than this has its host ended, and is tried again in parts; None: it is only shown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_budget_s < self.budget_s:
            raise SettingError(f"max_budget_s must be at least budget_s {self.budget_s}, got {self.max_budget_s}")


GROUPS: tuple[type[SettingsGroup], ...] = (QueueSettings, ErrorSettings, StateSettings, WorkSettings)


@explained
@dataclass(frozen=True)
class Settings:
    """Settings of a run: `start(app, settings=Settings(queues=QueueSettings(q_size=1000)))`. Checked when made.

    A value that is not given comes from the environment, else it is the default: ELASTREAM_QUEUES_Q_SIZE=1000 sets `queues.q_size`.
    docs/reference/settings.md has all of them.
    """

    queues: QueueSettings = field(default_factory=QueueSettings)
    """Limits of the tuples that wait in lanes."""

    errors: ErrorSettings = field(default_factory=ErrorSettings)
    """Tuples on which operators fail."""

    state: StateSettings = field(default_factory=StateSettings)
    """State of keyed operators and of DataFrame operators."""

    works: WorkSettings = field(default_factory=WorkSettings)
    """Works, the portions of tuples that hosts serve at a time."""

    def __post_init__(self) -> None:
        for group in GROUPS:
            value = getattr(self, group.group)
            if not isinstance(value, group):
                raise SettingError(
                    f"settings: {group.group} must be a {group.__name__}, got {type(value).__name__} {value!r}; "
                    f"write {group.group}={group.__name__}(...)"
                )
        check_environment(all_options())


def all_options() -> tuple[Option, ...]:
    """Every setting, group by group."""
    return tuple(option for group in GROUPS for option in options_of(group))
