"""How a run behaves. Every field has a default that a newcomer can leave alone."""

from dataclasses import dataclass
from typing import Literal

from elastream.errors import SettingError
from elastream.field_docs import explained

LEAST_STATE_BYTES = 1 << 20
"""An empty store takes some pages already."""


@explained
@dataclass(frozen=True)
class Settings:
    """Settings of a run: `run(app, settings=Settings(q_size=1000))`. Checked when made."""

    budget_s: float = 0.05
    """How long a work may take. Shorter: less latency. Longer: less overhead."""

    max_budget_s: float = 1.0
    """How far the budget may grow when the driver or the storage is slow."""

    q_size: int | None = None
    """The most tuples that may wait in one lane; None: no limit."""

    on_full: Literal["wait", "drop"] = "wait"
    """A full lane makes its senders wait, or loses what does not fit (counted)."""

    t_out_s: float | None = None
    """A tuple older than this is dropped (counted) before it is served; None: none is."""

    on_error: Literal["dead_letter", "stop"] = "dead_letter"
    """A tuple on which an operator raises, or ends its process, is put aside with its error (counted), or ends the run."""

    stop_after_failures: int | None = 100
    """An operator that fails on all of its first so many tuples of a run ends the run; None: it does not."""

    most_letters: int | None = 100_000
    """Dead letters that a base keeps; of more, the oldest are removed unread (counted). None: no limit."""

    letters_days: float | None = 30.0
    """Dead letters older than this are removed unread (counted); None: they stay."""

    work_timeout_s: float | None = None
    """A work that takes longer than this has its host ended, and is tried again in parts; None: it is only shown."""

    ring_s: float | None = 1.0
    """How often what keyed operators remember is copied to the next replica's host, to go on there when a host dies; None: never."""

    state_bytes_per_host: int | None = None
    """What keyed operators remember may fill so much of each host's disk, copies for the ring included; None: as much as there is."""

    state_partitions: int = 4
    """Into how many parts Spark cuts the state of dataframe operators, when a base is new; later `handle.rescale_state` does."""

    def __post_init__(self) -> None:
        for name in ("budget_s", "max_budget_s"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} must be more than 0, got {getattr(self, name)}")
        if self.max_budget_s < self.budget_s:
            raise SettingError(f"max_budget_s must be at least budget_s {self.budget_s}, got {self.max_budget_s}")
        if self.ring_s is not None and not self.ring_s > 0:
            raise SettingError(f"ring_s must be more than 0, got {self.ring_s}; None means no copies")
        if self.state_bytes_per_host is not None and self.state_bytes_per_host < LEAST_STATE_BYTES:
            raise SettingError(
                f"state_bytes_per_host must be {LEAST_STATE_BYTES} (1 MiB) or more, got {self.state_bytes_per_host}; "
                "None means no limit but the disk"
            )
        if self.state_partitions < 1:
            raise SettingError(f"state_partitions must be 1 or more, got {self.state_partitions}")
        if self.q_size is not None and self.q_size < 1:
            raise SettingError(f"q_size must be 1 or more, got {self.q_size}; None means no limit")
        if self.t_out_s is not None and not self.t_out_s > 0:
            raise SettingError(f"t_out_s must be more than 0, got {self.t_out_s}; None means no limit")
        if self.stop_after_failures is not None and self.stop_after_failures < 1:
            raise SettingError(
                f"stop_after_failures must be 1 or more, got {self.stop_after_failures}; None means that no run stops for it"
            )
        if self.most_letters is not None and self.most_letters < 0:
            raise SettingError(f"most_letters must be 0 or more, got {self.most_letters}; None means no limit")
        if self.letters_days is not None and not self.letters_days > 0:
            raise SettingError(f"letters_days must be more than 0, got {self.letters_days}; None means no limit")
        if self.work_timeout_s is not None and not self.work_timeout_s > 0:
            raise SettingError(f"work_timeout_s must be more than 0, got {self.work_timeout_s}; None means no limit")
        if self.on_full not in ("wait", "drop"):
            raise SettingError(f"on_full must be 'wait' or 'drop', got {self.on_full!r}")
        if self.on_error not in ("dead_letter", "stop"):
            raise SettingError(f"on_error must be 'dead_letter' or 'stop', got {self.on_error!r}")
